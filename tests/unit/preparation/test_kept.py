import numpy as np
import pytest
from unit.preparation.prepared import content
from unit.preparation.test_pipeline import two_sources

from dragoman.errors import CorruptFileError
from dragoman.preparation import dropped_examples, kept, prepare
from dragoman.preparation.kept import mark_kept, range_of
from dragoman.preparation.plan import make_plan
from dragoman.preparation.workers import LocalWorkers

STRICT = ["cleaning.duplicates=near", "cleaning.drop_leaks=true"]


def records(config):
    """All that the stages say of duplicates, leaks and what sources have in common."""
    plan = make_plan(config)
    stages = [plan.kept, *([plan.overlap] if plan.has_overlap else [])]
    return [
        path.read_bytes() for stage in stages for path in sorted(stage.folder.rglob("[0-9]*.*"))
    ]


@pytest.mark.parametrize("keys_at_once", [30, 300])
@pytest.mark.usefixtures("small_slices")
def test_ranges_of_keys_decide_as_all_keys_do(recipe, digits, monkeypatch, keys_at_once):
    whole = prepare(recipe(*STRICT))
    expected = records(recipe(*STRICT))
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", keys_at_once)
    by_ranges = prepare(recipe(*STRICT, name="ranges"))
    dropped = by_ranges.passport.splits["train"].dropped
    assert dropped["duplicate"] > 0
    assert dropped["in validation or test"] > 0
    assert content(by_ranges) == content(whole)
    assert records(recipe(*STRICT, name="ranges")) == expected
    assert dropped_examples(recipe(*STRICT)) == dropped_examples(recipe(*STRICT, name="ranges"))


@pytest.mark.parametrize("weights", [(1.0, 3.0), (2.0, 2.0)])
@pytest.mark.usefixtures("small_slices")
def test_ranges_compare_sources_as_all_keys_do(recipe, digits, monkeypatch, weights):
    whole = prepare(two_sources(recipe, digits, weights))
    expected = records(two_sources(recipe, digits, weights))
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", 200)
    config = two_sources(recipe, digits, weights, name="ranges")
    by_ranges = prepare(config)
    assert content(by_ranges) == content(whole)
    assert records(config) == expected
    assert by_ranges.passport.splits == whole.passport.splits


@pytest.mark.usefixtures("small_slices")
def test_nothing_of_the_comparison_is_left(recipe, monkeypatch):
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", 300)
    prepared = prepare(recipe())
    names = {path.name.rsplit("-", 1)[0] for path in prepared.folder.iterdir() if path.is_dir()}
    assert names == {"index", "clean", "kept", "held-out", "tokenizer", "shards"}


@pytest.mark.usefixtures("small_slices")
def test_a_range_that_was_cut_off_is_refused(recipe, monkeypatch):
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", 300)
    config = recipe()
    monkeypatch.setattr("dragoman.preparation.pipeline._learn", cut_a_range)
    with pytest.raises(CorruptFileError, match=r"codes: is shorter .* remove the folder .*compar"):
        prepare(config)


def cut_a_range(plan, total, workers):
    (path, *_) = plan.folder.glob("compared-*/00000.codes")
    path.write_bytes(path.read_bytes()[:5])
    for done in plan.kept.folder.glob("*.json"):
        done.unlink()
    mark_kept(plan, LocalWorkers(1))


def test_ranges_of_hashes_are_about_equal():
    keys = np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
    counts = np.bincount(range_of(np.sort(keys), 7).astype(np.int64), minlength=7)
    assert len(counts) == 7
    assert counts.min() > 1200
    assert (np.diff(range_of(np.sort(keys), 7).astype(np.int64)) >= 0).all()


def test_the_largest_and_smallest_keys_are_in_ranges():
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert range_of(ends, 5).tolist() == [0, 4]
