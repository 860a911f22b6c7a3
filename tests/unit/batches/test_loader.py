import threading
from types import SimpleNamespace

import pytest
import torch

from dragoman.batches import loader as loader_module
from dragoman.batches.loader import Loader
from dragoman.batches.merges import Merges
from dragoman.batches.plan import BatchPlan
from dragoman.batches.subword_dropout import SubwordDropout, growth, widest
from dragoman.distributed.group import Group
from dragoman.errors import CorruptFileError
from dragoman.preparation import prepare


def loader_for(config, group, first_step=1, shards=None, share=0.0):
    prepared = prepare(config)
    shards = shards or prepared.shards("train")
    lengths = prepared.shards("train").lengths()
    tokenizer = prepared.tokenizer()
    dropout = None
    if share:
        dropout = SubwordDropout(Merges(tokenizer.model, "x"), share, 1)
        lengths = growth(shards, dropout).planned(lengths, 200)
    plan = BatchPlan(lengths, 400, 200, 1)
    return Loader(shards, plan, tokenizer, group, first_step, dropout), plan


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


def same(one, other):
    return (
        torch.equal(one.source_BS, other.source_BS)
        and torch.equal(one.target_in_BT, other.target_in_BT)
        and torch.equal(one.target_out_N, other.target_out_N)
    )


def test_subwords_are_drawn_alike_by_any_number_of_ranks_and_from_any_step(digits_config):
    loaders = [
        loader_for(digits_config, group_of(0, 1), share=0.3)[0],
        *(loader_for(digits_config, group_of(rank, 2), 3, share=0.3)[0] for rank in range(2)),
    ]
    with loaders[0], loaders[1], loaders[2]:
        whole = [loaders[0].next() for _ in range(5)]
        parts = [[loader.next() for _ in range(3)] for loader in loaders[1:]]
    for step, *shares in zip(whole[2:], *parts, strict=True):
        assert {share.step for share in shares} == {step.step}
        assert {share.tokens for share in shares} == {step.tokens}
        for share in shares:
            for number, batch in zip(share.numbers, share.batches, strict=True):
                assert same(batch, step.batches[number])


def test_what_is_counted_is_what_was_drawn_and_no_batch_is_wider_than_planned(digits_config):
    lengths = prepare(digits_config).shards("train").lengths()
    loader, plan = loader_for(digits_config, group_of(0, 1), share=0.3)
    usual = drawn = 0
    with loader:
        for step in range(1, 11):
            work, micro_batches = loader.next(), plan.batch(step).micro_batches
            tokens = sum(len(batch.target_out_N) for batch in work.batches)
            assert work.tokens == work.amounts.target_tokens == tokens
            sides = [side for b in work.batches for side in (b.source_BS, b.target_in_BT)]
            assert max(side.numel() for side in sides) <= plan.micro_batch_tokens
            assert work.amounts.positions == sum(side.numel() for side in sides)
            assert work.amounts.sequences == sum(len(m.pairs) for m in micro_batches)
            for batch, micro_batch in zip(work.batches, micro_batches, strict=True):
                expected = plan.lengths[micro_batch.pairs].max(axis=0)
                assert batch.source_BS.shape[1] <= widest(int(expected[0]))
                assert batch.target_in_BT.shape[1] <= widest(int(expected[1]))
                usual += int(lengths[micro_batch.pairs, 1].sum())
            drawn += work.tokens
    assert drawn > 1.1 * usual


@pytest.mark.parametrize("share", [0.0, 0.3], ids=["as it is", "with subword dropout"])
def test_gradients_are_divided_by_the_tokens_of_the_ranks_that_are_added_up(digits_config, share):
    alone = [loader_for(digits_config, group_of(rank, 2), share=share)[0] for rank in range(2)]
    for rank, loader in enumerate(alone):
        loader._summed_ranks = [rank]
    together = loader_for(digits_config, group_of(0, 2), share=share)[0]
    with alone[0], alone[1], together:
        parts, whole = [loader.next() for loader in alone], together.next()
    for part in parts:
        assert part.summed_tokens == sum(len(batch.target_out_N) for batch in part.batches)
        assert part.tokens == whole.tokens == whole.summed_tokens
    assert sum(part.summed_tokens for part in parts) == whole.tokens


class Arriving:
    """Stands for files that come when a test says so."""

    def __init__(self):
        self.is_complete, self.steps, self.looks = False, [], threading.Semaphore(0)

    def begin(self, step):
        self.steps.append(step)

    def passed(self, step):
        self.steps.append(step)

    def is_here(self, block):
        self.looks.release()
        return self.is_complete

    def has(self, block):
        return self.is_complete


def test_steps_wait_for_their_shards_and_tell_how_far_they_have_come(digits_config):
    loader, plan = loader_for(digits_config, group_of(0, 1), first_step=3)
    loader._arrival = arriving = Arriving()
    with loader:
        assert arriving.looks.acquire(timeout=60)
        assert arriving.looks.acquire(timeout=60)  # it has looked again
        assert loader._ready.empty()
        arriving.is_complete = True
        assert [loader.next().step, loader.next().step] == [3, 4]
    assert arriving.steps == [3, 2, 3]
    assert len(plan.blocks) == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_a_rank_that_has_its_shards_waits_for_others_and_is_not_behind(
    digits_config, monkeypatch, is_late
):
    """Of two ranks, of which one lacks the shards in two of three exchanges."""
    lacking = [1.0, 1.0, 0.0]
    clock = SimpleNamespace(now=0.0)

    def look():
        clock.now += 1.0
        return clock.now

    def sums(group, values):
        clock.now += 100.0
        return [lacking.pop(0), 0.0]

    loader, _ = loader_for(digits_config, group := group_of(0, 2))
    loader._arrival = arriving = Arriving()
    arriving.is_complete = True
    group.pulse.enter("data", 1)
    monkeypatch.setattr(Group, "sums", sums)
    with monkeypatch.context() as patched, loader:
        clocks = SimpleNamespace(monotonic=look, perf_counter=look)
        patched.setattr(loader_module, "time", clocks)
        if is_late:
            patched.setattr(arriving, "has", lambda block: not lacking[0])
        assert loader.next().step == 1
    assert loader.waited_for_others_s // 100 == (1 if is_late else 3)
    assert group.pulse.phase == ("data" if is_late else "agreement")


def test_a_loader_that_waits_for_shards_can_be_left(digits_config):
    before = threading.active_count()
    loader, _ = loader_for(digits_config, group_of(0, 1))
    loader._arrival = arriving = Arriving()
    with loader:
        assert arriving.looks.acquire(timeout=60)
    assert threading.active_count() == before
