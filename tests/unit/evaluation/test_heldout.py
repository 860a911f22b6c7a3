import pytest
import torch
from injection import run_out

from dragoman.distributed.group import Group
from dragoman.evaluation.heldout import HeldOut
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
