import threading

import pytest
import torch

from dragoman.batches.loader import Loader
from dragoman.batches.plan import BatchPlan
from dragoman.distributed.group import Group
from dragoman.errors import CorruptFileError
from dragoman.preparation import prepare


def loader_for(config, group, first_step=1, shards=None):
    prepared = prepare(config)
    shards = shards or prepared.shards("train")
    plan = BatchPlan(prepared.shards("train").lengths(), 400, 200, 1)
    return Loader(shards, plan, prepared.tokenizer(), group, first_step), plan


def group_of(rank, ranks):
    return Group(rank, ranks, rank, torch.device("cpu"))


def test_steps_come_in_order_from_the_first_asked_for(digits_config):
    loader, plan = loader_for(digits_config, group_of(0, 1), first_step=7)
    with loader:
        steps = [loader.next() for _ in range(4)]
    assert [work.step for work in steps] == [7, 8, 9, 10]
    assert [work.tokens for work in steps] == [plan.batch(step).tokens for step in range(7, 11)]


def test_ranks_together_get_the_whole_batch_and_nothing_twice(digits_config):
    alone, plan = loader_for(digits_config, group_of(0, 1))
    assert plan.micro_batches_per_step >= 2
    shares = [loader_for(digits_config, group_of(rank, 2))[0] for rank in range(2)]
    with alone, shares[0], shares[1]:
        whole = alone.next()
        parts = [share.next() for share in shares]
    assert sorted(parts[0].numbers + parts[1].numbers) == whole.numbers
    tokens = sum(len(batch.target_out_N) for part in parts for batch in part.batches)
    assert tokens == whole.tokens == parts[0].tokens


def test_a_fault_of_the_data_is_raised_where_it_is_waited_for(digits_config):
    class Broken:
        def __getitem__(self, number):
            raise CorruptFileError("shard torn")

    loader, _ = loader_for(digits_config, group_of(0, 1), shards=Broken())
    with loader, pytest.raises(CorruptFileError, match="shard torn"):
        loader.next()


def test_leaving_early_ends_the_thread(digits_config):
    before = threading.active_count()
    loader, _ = loader_for(digits_config, group_of(0, 1))
    with loader:
        loader.next()
    assert threading.active_count() == before
