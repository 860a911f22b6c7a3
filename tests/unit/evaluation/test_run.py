"""A trained run, evaluated as `dragoman evaluate` does it."""

import errno
import os
from contextlib import contextmanager

import pytest
from digits_language import write_digits

from dragoman.config import dump_config, load_config, parse_config
from dragoman.errors import StorageError, UserError
from dragoman.evaluation.parallel_text import from_files
from dragoman.evaluation.run import Extras, Weights, evaluate_run
from dragoman.evaluation.scores import all_scores, read_scores
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
    def show_progress(name, total):
        counted.append(total)
        yield counted.append

    (scored,) = evaluate_run(run, "validation", Weights(beam=1), show_progress=show_progress)
    assert (scored.split, scored.steps, scored.beam) == ("validation", [4], 1)
    assert scored.sentences == counted[0] == sum(counted[1:])
    assert read_scores(run, "validation") == scored
    translations = read_sentences(run.evaluation_text("validation", "translations"))
    references = read_sentences(run.evaluation_text("validation", "references"))
    assert len(translations) == len(references) == scored.sentences
    assert [sample["translation"] for sample in scored.samples] == translations[:20]
    assert not run.evaluation("test").exists()


def test_a_split_that_the_recipe_does_not_have_is_named(run):
    with pytest.raises(UserError, match=r"other.*validation, test"):
        evaluate_run(run, "other")


def test_another_set_and_another_system_are_scored_beside_the_recipe_s_own(run, tmp_path):
    source, reference, other = (tmp_path / name for name in ("my.en", "my.de", "other.de"))
    source.write_text("one two three four five\nsix\n", encoding="utf-8")
    reference.write_text("eins zwei drei vier fünf\nsechs\n", encoding="utf-8")
    other.write_text("eins zwei drei vier fünf\nsechs\n", encoding="utf-8")
    text = from_files(load_config(run.config), str(source), str(reference))
    (scored,) = evaluate_run(run, [text], extras=Extras(published=True, against=other, worst=1))
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
    (kept,) = evaluate_run(run, "validation", Weights(beam=1))
    assert kept.comparison is None
    extras = Extras(against=run.root)
    (again,) = evaluate_run(run, "validation", Weights(beam=1), extras)
    assert again.comparison is not None
    assert [metric.gain for metric in again.comparison.metrics] == [0.0] * 3
    assert again.comparison.other == f"{run.root} (step 4, beam 1)"


def test_translations_are_kept_for_exactly_their_sentences(run, tmp_path):
    config = load_config(run.config)
    reference = tmp_path / "my.de"
    reference.write_text("eins zwei\n" * 30, encoding="utf-8")

    def count_translations(sentences):
        """Of an evaluation of the sentences, against the run itself."""
        source = tmp_path / "my.en"
        source.write_text(sentences, encoding="utf-8")
        text, translated = from_files(config, str(source), str(reference)), []

        @contextmanager
        def show_progress(name, total):
            translated.append(total)
            yield lambda count: None

        extras = Extras(against=run.root)
        (scored,) = evaluate_run(run, [text], extras=extras, show_progress=show_progress)
        assert scored.comparison is not None
        assert [metric.gain for metric in scored.comparison.metrics] == [0.0] * 3
        return len(translated)

    of_all = "one two\n" * 30
    assert count_translations(of_all) == 2
    assert count_translations(of_all) == 1
    other_end = "one two\n" * 29 + "nine\n"
    assert count_translations(other_end) == 2
    # As after a crash between the files: translations of another evaluation than the scores.
    kept = run.evaluation_text("my", "translations")
    kept.write_text("acht\n" * 30, encoding="utf-8")
    assert count_translations(other_end) == 2
    kept.write_text("acht\n" * 31, encoding="utf-8")
    assert count_translations(other_end) == 2


def test_what_cannot_be_compared_or_kept_is_refused_before_the_translation(
    run, tmp_path, monkeypatch
):
    def refuse(path):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def show_progress(name, total):
        raise AssertionError("nothing is to be translated")

    with pytest.raises(UserError, match="is no run"):
        evaluate_run(
            run, "validation", extras=Extras(against=tmp_path), show_progress=show_progress
        )
    monkeypatch.setattr("dragoman.rundir._open_beside", refuse)
    with pytest.raises(StorageError, match="evaluation-validation"):
        evaluate_run(run, "validation", show_progress=show_progress)


def test_translations_of_other_sentences_are_refused_and_nothing_is_written(run, tmp_path):
    other = tmp_path / "other.de"
    other.write_text("eins\n", encoding="utf-8")
    with pytest.raises(UserError, match="has 1 lines"):
        evaluate_run(run, "validation", extras=Extras(against=other))
    assert not run.evaluation("validation").exists()


def test_every_test_set_has_scores_of_its_own(run, digits):
    write_digits(digits.parent, "news", 12, seed=4)
    config = digits.read_text(encoding="utf-8")
    news = ', { kind = "text", source = "news.en", target = "news.de", test_set = "news" }]'
    lines = [
        line.removesuffix("]") + news if line.startswith("test = ") else line
        for line in config.splitlines()
    ]
    two_sets = parse_config("\n".join(lines), "x", ["training.steps=4"])
    prepare(two_sets)
    run.config.write_text(dump_config(two_sets), encoding="utf-8")

    both = evaluate_run(run, "test", Weights(beam=1))
    assert [(scored.split, scored.sentences, scored.test_place) for scored in both] == [
        ("test-1", 40, 1),
        ("news", 12, 2),
    ]
    assert all_scores(run) == both
    assert len({scored.bleu_signature for scored in both}) == 1
    assert all(scored.bleu_low is not None for scored in both)
    (alone,) = evaluate_run(run, "news", Weights(beam=1))
    assert alone == both[1]
    one_file = Extras(against=digits.parent / "news.de")
    with pytest.raises(UserError, match="--split: test-1, news"):
        evaluate_run(run, "test", extras=one_file)
    with pytest.raises(UserError, match=r"wmt14.*validation, test-1, news, test"):
        evaluate_run(run, "wmt14")
