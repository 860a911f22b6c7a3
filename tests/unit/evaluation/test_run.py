"""A trained run, evaluated as `dragoman evaluate` does it."""

from contextlib import contextmanager

import pytest

from dragoman.config import parse_config
from dragoman.errors import UserError
from dragoman.evaluation.run import evaluate_run
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

    scored = evaluate_run(run, "validation", beam=1, show_progress=show_progress)
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
