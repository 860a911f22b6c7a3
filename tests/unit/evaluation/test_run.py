"""A trained run, evaluated as `dragoman evaluate` does it."""

from contextlib import contextmanager

import pytest

from dragoman.config import load_config, parse_config
from dragoman.errors import UserError
from dragoman.evaluation.parallel_text import from_files
from dragoman.evaluation.run import Extras, Weights, evaluate_run
from dragoman.evaluation.scores import read_scores
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, read_sentences
from dragoman.training.train import train


@pytest.fixture
def run(digits, tmp_path):
    config = parse_config(digits.read_text(encoding="utf-8"), "x", ["training.steps=4"])
    prepare(config)
    directory = RunDir(tmp_path / "run")
    train(config, directory)
    return directory


def test_a_split_is_translated_scored_and_kept(run):
    counted = []

    @contextmanager
    def show_progress(total):
        counted.append(total)
        yield counted.append

    scored = evaluate_run(run, "validation", Weights(beam=1), show_progress=show_progress)
    assert (scored.split, scored.steps, scored.beam) == ("validation", [4], 1)
    assert scored.sentences == counted[0] == sum(counted[1:])
    assert read_scores(run, "validation") == scored
    translations = read_sentences(run.evaluation_text("validation", "translations"))
    references = read_sentences(run.evaluation_text("validation", "references"))
    assert len(translations) == len(references) == scored.sentences
    assert [sample["translation"] for sample in scored.samples] == translations[:20]
    assert not run.evaluation("test").exists()


def test_a_split_that_the_recipe_does_not_have_is_named(run):
    with pytest.raises(UserError, match="no other data"):
        evaluate_run(run, "other")


def test_another_set_and_another_system_are_scored_beside_the_recipe_s_own(run, tmp_path):
    source, reference, other = (tmp_path / name for name in ("my.en", "my.de", "other.de"))
    source.write_text("one two three four five\nsix\n", encoding="utf-8")
    reference.write_text("eins zwei drei vier fünf\nsechs\n", encoding="utf-8")
    other.write_text("eins zwei drei vier fünf\nsechs\n", encoding="utf-8")
    text = from_files(load_config(run.config), str(source), str(reference))
    scored = evaluate_run(run, text, extras=Extras(published=True, against=other, worst=1))
    assert (scored.split, scored.sentences) == ("my", 2)
    assert [metric.name for metric in scored.metrics] == [
        *("BLEU", "chrF", "TER"),
        "BLEU, published form",
    ]
    assert scored.metrics[0].score == scored.bleu
    assert len(scored.worst) == 1
    assert scored.comparison is not None
    assert scored.comparison.metrics[0].other == pytest.approx(100.0)
    assert scored.comparison.metrics[0].gain == pytest.approx(scored.bleu - 100.0)
    assert read_scores(run, "my") == scored
    assert not run.evaluation("test").exists()


def test_a_run_is_as_good_as_itself(run):
    kept = evaluate_run(run, "validation", Weights(beam=1))
    assert kept.comparison is None
    extras = Extras(against=run.root)
    again = evaluate_run(run, "validation", Weights(beam=1), extras)
    assert again.comparison is not None
    assert [metric.gain for metric in again.comparison.metrics] == [0.0] * 3
    assert again.comparison.other == f"{run.root} (step 4, beam 1)"


def test_translations_kept_of_other_sentences_are_not_compared(run, tmp_path):
    source, reference = tmp_path / "my.en", tmp_path / "my.de"
    reference.write_text("eins zwei\nsechs\n", encoding="utf-8")
    config, kept = load_config(run.config), run.evaluation_text("my", "translations")

    def score_of_the_same_run(sentences, kept_translations):
        kept.write_text(kept_translations, encoding="utf-8")
        source.write_text(sentences, encoding="utf-8")
        text = from_files(config, str(source), str(reference))
        scored = evaluate_run(run, text, extras=Extras(against=run.root))
        assert scored.comparison is not None
        return scored.comparison.metrics[1].other

    source.write_text("nine nine\nnine\n", encoding="utf-8")
    evaluate_run(run, from_files(config, str(source), str(reference)))
    assert score_of_the_same_run("nine nine\nnine\n", "eins zwei\nsechs\n") == 100.0
    assert score_of_the_same_run("one two\nsix\n", "eins zwei\nsechs\n") < 100.0
    # As after a crash between the files: more translations than references.
    assert score_of_the_same_run("one two\nsix\n", "eins zwei\nsechs\ndrei\n") < 100.0


def test_translations_of_other_sentences_are_refused_and_nothing_is_written(run, tmp_path):
    other = tmp_path / "other.de"
    other.write_text("eins\n", encoding="utf-8")
    with pytest.raises(UserError, match="has 1 lines"):
        evaluate_run(run, "validation", extras=Extras(against=other))
    assert not run.evaluation("validation").exists()
