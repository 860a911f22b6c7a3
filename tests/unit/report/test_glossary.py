from unit.report.sections.test_questions import answer, figure

from dragoman.report.glossary import GLOSSARY, words_in


def test_words_are_explained_in_the_order_in_which_they_are_met():
    found = words_in(
        answer(
            sentence="Rank 2 is late in every all-reduce.",
            evidence=[figure("loss", 3.1, "nats"), figure("MFU", 0.3, "share")],
        )
    )

    assert [word for word, _ in found] == ["rank", "all-reduce", "nats", "MFU"]
    assert found[-1] == ("MFU", GLOSSARY["MFU"])


def test_a_part_of_a_word_is_not_jargon():
    assert words_in(answer(sentence="During the spring it hid the Franks.")) == []
