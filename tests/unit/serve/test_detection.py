import pytest

from dragoman.serve import detection
from dragoman.serve.detection import detect

SENTENCES = {
    "en": "This is the house that we have seen in the morning.",
    "de": "Das ist das Haus, das wir nicht mit dem Auto gesehen haben.",
    "fr": "Je ne suis pas dans la rue, et les enfants sont à la maison.",
    "ru": "Я не знаю, что это за дом.",
    "uk": "Я не знаю, що це за дім.",
}


@pytest.fixture(params=["cld2", "counting"])
def way(request, monkeypatch):
    if request.param == "counting":
        monkeypatch.setattr(detection, "pycld2", None)
    else:
        pytest.importorskip("pycld2")


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_found_in_their_language(way, language):
    first, *others = detect(SENTENCES[language], list(SENTENCES))
    assert first.language == language
    assert 0 < first.confidence <= 100
    assert all(other.confidence <= first.confidence for other in others)


def test_only_served_languages_are_found(way):
    assert {each.language for each in detect(SENTENCES["de"], ["en", "fr"])} <= {"en", "fr"}


@pytest.mark.parametrize("text", ["", "12345", "\x00\x07\ufffe", "漢字", "..."])
def test_where_nothing_speaks_for_a_language_the_first_is_named_without_confidence(
    monkeypatch, text
):
    monkeypatch.setattr(detection, "pycld2", None)
    assert detect(text, ["en", "de"]) == [("en", 0.0)]


@pytest.mark.parametrize(
    "text", ["", "\x00\x07\ufffe", "a\ud800".encode(errors="replace").decode()]
)
def test_strange_texts_have_an_answer(way, text):
    assert len(detect(text, ["en", "de"])) >= 1


def test_codes_with_script_or_country_are_kept_as_they_are_served(way):
    assert detect(SENTENCES["de"], ["de-AT", "en"])[0].language == "de-AT"
