import pytest
import torch
from recorded import events

from dragoman.config import load_config, parse_config
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.model import memory
from dragoman.model.size import size_of
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import AttemptStarted, StepDone
from dragoman.training import micro_batch
from dragoman.training.manifest import read_manifest
from dragoman.training.micro_batch import (
    find_micro_batch,
    for_all_ranks,
    largest_that_fits,
    worst_batch,
)

ALONE = Group(0, 1, 0, torch.device("cpu"))
AUTO = "training.micro_batch_tokens=auto"


def tried(needs, least, most, room, fixed=0):
    """Returns the answer and the sizes that were tried for it."""
    sizes = []

    def measure(tokens):
        sizes.append(tokens)
        return needs(tokens)

    return largest_that_fits(measure, least, most, fixed, room), sizes


@pytest.mark.parametrize(
    ("constant", "fixed", "each"),
    [(0, 0, 10), (50_000, 50_000, 10), (1000, 500, 3)],
    ids=["all grows", "half is known", "a little is not known"],
)
def test_the_answer_fills_the_room_and_nothing_larger_is_tried(constant, fixed, each):
    answer, sizes = tried(lambda tokens: constant + each * tokens, 50, 10**6, 100_000, fixed)
    largest = (100_000 - constant) / each
    assert 0.85 * largest <= answer <= largest
    assert max(sizes) <= largest
    assert len(sizes) < 25


def test_no_more_is_tried_than_an_update_has():
    assert tried(lambda tokens: tokens, 50, 777, 10**9)[0] == 777
    assert tried(lambda tokens: tokens, 777, 777, 10**9) == (777, [777])


@pytest.mark.parametrize("needs", [lambda tokens: 101, lambda tokens: None], ids=["much", "out"])
def test_nothing_fits_where_the_least_does_not(needs):
    assert tried(needs, 50, 1000, 100) == (None, [50])


def test_where_memory_runs_out_unforeseen_it_goes_back():
    """As on a GPU, whose allocator needs more than the tensors do."""
    answer, sizes = tried(lambda n: n if n <= 3000 else None, 50, 10**6, 10**6)
    assert 0.8 * 3000 <= answer <= 3000
    assert len(sizes) < 25


def test_a_size_that_jumps_over_the_room_is_not_the_answer():
    answer, _ = tried(lambda n: n if n <= 500 else 10 * n, 50, 10**6, 1000)
    assert answer <= 500


def test_the_worst_batch_is_full_on_both_sides_and_has_a_mask():
    batch = worst_batch((7, 12), 100)
    assert batch.target_in_BT.shape == (9, 12)
    assert batch.source_BS.shape == (9, 7)
    assert batch.source_mask is not None
    assert worst_batch((1, 1), 1).source_BS.shape == (1, 1)


def prepared_with(digits, *overrides):
    config = parse_config(digits.read_text(encoding="utf-8"), "x", [AUTO, *overrides])
    prepare(config)
    return config, PreparedData.open(config.prepared_folder)


def test_a_number_is_left_as_it_is(digits_config, tmp_path):
    assert find_micro_batch(digits_config, RunDir(tmp_path), None, ALONE) is digits_config


def test_memory_that_is_scarce_gives_fewer_tokens(digits, tmp_path, monkeypatch):
    """One token is made to need 2,000 bytes, since the process hardly grows for this model."""
    monkeypatch.setattr(micro_batch._Trial, "measure", lambda self, tokens: 2000 * tokens)
    config, prepared = prepared_with(digits, "training.tokens_per_update=3000")
    found = {}
    for megabytes in (1, 2, 1000):
        monkeypatch.setattr(micro_batch, "room_bytes", lambda *_, m=megabytes: m * 10**6)
        resolved = find_micro_batch(config, RunDir(tmp_path / "none"), prepared, ALONE)
        found[megabytes] = resolved.training.micro_batch_tokens
    assert found[1] <= 500 < found[2] <= 1000 < found[1000]
    assert found[1000] >= 3000  # the whole update in one pass


@pytest.mark.parametrize(
    ("spare_bytes", "facts"),
    [
        (-1, ("no memory for the model alone", "lower the sizes in model")),
        (1000, ("no memory for one pair of", "lower data.max_length or the sizes in model")),
    ],
    ids=["the model", "one pair"],
)
def test_without_memory_it_is_refused_before_anything_is_written(
    digits, tmp_path, monkeypatch, spare_bytes, facts
):
    config, prepared = prepared_with(digits)
    run = RunDir(tmp_path / "run")
    size = size_of(config.model, prepared.passport.vocabulary)
    room = size.weight_bytes + size.gradient_bytes + spare_bytes
    monkeypatch.setattr(micro_batch, "room_bytes", lambda *_: room)
    monkeypatch.setattr(micro_batch._Trial, "measure", lambda *_: room + 1)
    with pytest.raises(UserError) as refused:
        find_micro_batch(config, run, prepared, ALONE)
    for fact in (*facts, "training.micro_batch_tokens", "1 worker"):
        assert fact in str(refused.value)
    assert not run.root.exists()


def test_memory_is_shared_by_the_workers_of_a_host(digits, monkeypatch):
    config, _ = prepared_with(digits)
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**9)
    one, two = (micro_batch.room_bytes(config, 60, ALONE, workers) for workers in (1, 2))
    assert one - two == pytest.approx(0.4e9, rel=0.01)
    assert one < 0.8e9


def test_every_rank_has_a_micro_batch(digits):
    config, prepared = prepared_with(digits)
    lengths = prepared.shards("train").lengths()
    found = [for_all_ranks(config, lengths, 5000, ranks) for ranks in (1, 2, 4)]
    assert found[0] == 5000
    assert found[0] > found[1] > found[2] >= lengths.max()


def test_what_is_found_is_kept_for_the_run(run_with, tmp_path, monkeypatch):
    _, run = run_with(AUTO, "training.steps=6")
    found = load_config(run.config).training.micro_batch_tokens
    assert isinstance(found, int)
    assert read_manifest(run).micro_batch_tokens == found
    # Later it goes on with the same, whatever there is by then.
    monkeypatch.setattr(memory, "free_bytes", lambda: 0)
    run_with(AUTO, "training.steps=10")
    assert load_config(run.config).training.micro_batch_tokens == found
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 7]
    _, whole = run_with(f"training.micro_batch_tokens={found}", "training.steps=10", name="whole")
    losses, expected = ({e.step: e.loss for e in events(r, StepDone)} for r in (run, whole))
    assert losses == expected
    with pytest.raises(UserError, match=r"training\.micro_batch_tokens"):
        run_with(f"training.micro_batch_tokens={found + 1}", "training.steps=12")


@pytest.mark.parametrize(
    "settings",
    [("training.r_drop=1.0",), ("training.subword_dropout=0.2",), ("training.precision=bf16",)],
    ids=lambda settings: settings[0],
)
def test_what_is_found_goes_with_other_settings(run_with, settings):
    ending, _ = run_with(AUTO, "training.steps=2", *settings)
    assert ending.step == 2
