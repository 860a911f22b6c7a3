import pytest
import torch
from injection import run_out

from dragoman.distributed.group import Group
from dragoman.evaluation.heldout import HeldOut, fixed_sample
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.preparation import prepare

ALONE = Group(0, 1, 0, torch.device("cpu"))


@pytest.fixture
def held_out(digits_config):
    prepared = prepare(digits_config)
    shards, tokenizer = prepared.shards("validation"), prepared.tokenizer()
    torch.manual_seed(1)
    objective = Objective(Transformer(digits_config.model, tokenizer.size), 0.1)
    return HeldOut(shards, range(len(shards)), 200, tokenizer), objective


def test_memory_that_runs_out_changes_no_loss(held_out, monkeypatch):
    pairs, objective = held_out
    whole = pairs.loss(objective, ALONE)
    forward = Objective.forward
    sizes = []

    def small(self, batch):
        if len(batch.source_BS) > 4:
            run_out()
        sizes.append(len(batch.source_BS))
        return forward(self, batch)

    monkeypatch.setattr(Objective, "forward", small)
    assert pairs.loss(objective, ALONE) == pytest.approx(whole, abs=1e-6)
    assert sum(sizes) == 40
    assert objective.training


def test_other_errors_and_single_pairs_are_not_tried_again(held_out, monkeypatch):
    pairs, objective = held_out
    calls = []

    def fail(self, batch):
        calls.append(len(batch.source_BS))
        run_out()

    monkeypatch.setattr(Objective, "forward", fail)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        pairs.loss(objective, ALONE)
    assert calls[-1] == 1


def test_the_error_is_the_scatter_over_sentences(held_out, digits_config):
    pairs, objective = held_out
    measured = pairs.measure(objective, ALONE)
    assert measured.nats == pairs.loss(objective, ALONE)
    # The same by hand, from the loss of each sentence alone.
    prepared = prepare(digits_config)
    shards, tokenizer = prepared.shards("validation"), prepared.tokenizer()
    nats = [
        HeldOut(shards, [number], 200, tokenizer).loss(objective, ALONE)
        for number in range(len(shards))
    ]
    tokens = [len(shards[number].target) for number in range(len(shards))]
    beyond = [n * (one - measured.nats) for one, n in zip(nats, tokens, strict=True)]
    variance = sum(each**2 for each in beyond) * 40 / 39
    assert measured.error == pytest.approx(variance**0.5 / sum(tokens), rel=1e-3)


def test_memory_that_runs_out_changes_no_error(held_out, monkeypatch):
    pairs, objective = held_out
    whole = pairs.measure(objective, ALONE)
    forward = Objective.forward
    monkeypatch.setattr(
        Objective,
        "forward",
        lambda self, batch: run_out() if len(batch.source_BS) > 4 else forward(self, batch),
    )
    assert pairs.measure(objective, ALONE).error == pytest.approx(whole.error, rel=1e-5)


def test_of_one_sentence_there_is_no_error(held_out, digits_config):
    _, objective = held_out
    prepared = prepare(digits_config)
    alone = HeldOut(prepared.shards("validation"), [0], 200, prepared.tokenizer())
    assert alone.measure(objective, ALONE).error is None


@pytest.fixture
def objective(digits_config):
    torch.manual_seed(1)
    return Objective(Transformer(digits_config.model, 60), 0.1)


def test_the_held_out_loss_does_not_depend_on_micro_batches_or_dropout(digits_config, objective):
    prepared = prepare(digits_config)
    shards, tokenizer = prepared.shards("validation"), prepared.tokenizer()
    pairs = range(len(shards))
    small = HeldOut(shards, pairs, 20, tokenizer).loss(objective, ALONE)
    large = HeldOut(shards, pairs, 5000, tokenizer).loss(objective, ALONE)
    assert small == pytest.approx(large, rel=1e-5)
    assert HeldOut(shards, pairs, 20, tokenizer).loss(objective, ALONE) == small
    assert objective.training


def test_the_held_out_loss_is_not_smoothed(digits_config, objective):
    prepared = prepare(digits_config)
    held_out = HeldOut(prepared.shards("validation"), range(10), 500, prepared.tokenizer())
    plain = Objective(objective.model, 0.0)
    assert held_out.loss(objective, ALONE) == held_out.loss(plain, ALONE)


def test_the_sample_is_fixed_by_the_seed_and_has_no_pair_twice():
    sample = fixed_sample(1000, 50, seed=3)
    assert len(set(sample.tolist())) == 50
    assert sample.tolist() == fixed_sample(1000, 50, seed=3).tolist()
    assert sample.tolist() != fixed_sample(1000, 50, seed=4).tolist()
    assert len(fixed_sample(10, 50, seed=3)) == 10
