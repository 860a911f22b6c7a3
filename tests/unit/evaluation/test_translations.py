import pytest

from dragoman.errors import StorageError
from dragoman.evaluation import translations as module
from dragoman.evaluation.translations import ComparedWithBest, Translations
from dragoman.rundir import RunDir, read_sentences

REFERENCES = [f"the number {n} is a number and {n} is its name" for n in range(60)]
WORSE = [f"a number {n} was some number and its name" for n in range(60)]


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_the_first_evaluation_is_compared_with_nothing(run):
    assert Translations(run, "de").keep(10, None, WORSE, REFERENCES) == ComparedWithBest(None, None)
    assert read_sentences(run.translations(10)) == WORSE
    assert read_sentences(run.references) == REFERENCES


def test_a_later_one_is_compared_with_the_best_also_after_a_resume(run):
    Translations(run, "de").keep(10, None, WORSE, REFERENCES)
    compared = Translations(run, "de").keep(20, 10, REFERENCES, REFERENCES)
    assert compared.step == 10
    assert compared.bleu_gain_p is not None
    assert compared.bleu_gain_p < 0.01
    equal = Translations(run, "de").keep(30, 20, REFERENCES, REFERENCES)
    assert equal.bleu_gain_p == 1.0


@pytest.mark.parametrize("damage", ["gone", "shorter", "no text"])
def test_without_the_bests_translations_there_is_no_comparison(run, damage):
    kept = Translations(run, "de")
    kept.keep(10, None, WORSE, REFERENCES)
    path = run.translations(10)
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"one line\n" if damage == "shorter" else b"\xff\xfe\n" * 60)
    assert kept.keep(20, 10, WORSE, REFERENCES) == ComparedWithBest(None, None)


def test_a_disk_that_refuses_is_told_once_and_stops_nothing(run, monkeypatch):
    kept = Translations(run, "de")
    kept.keep(10, None, WORSE, REFERENCES)

    def refuse(path, sentences):
        raise StorageError(path, "writing", "No space left on device")

    monkeypatch.setattr(module, "write_sentences", refuse)
    first = kept.keep(20, 10, REFERENCES, REFERENCES)
    assert first.step == 10
    assert "No space left on device" in first.problem
    assert kept.keep(30, 10, REFERENCES, REFERENCES).problem == ""


def test_line_feeds_in_a_translation_shift_no_line(run):
    Translations(run, "de").keep(10, None, ["a\nb", "c\rd", ""], ["a b", "c d", "e"])
    assert read_sentences(run.translations(10)) == ["a b", "c\rd", ""]
