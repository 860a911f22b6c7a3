"""Loads the micro-batches of upcoming steps while the current step computes."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple

import numpy as np

from dragoman.batches.amounts import Amounts, amounts_of
from dragoman.batches.collate import Batch, collate
from dragoman.batches.plan import BatchPlan, MicroBatch, share_out
from dragoman.batches.subword_dropout import SubwordDropout, widest
from dragoman.console import WaitLog
from dragoman.distributed.group import Group
from dragoman.shards.arrival import Arrival
from dragoman.shards.files import PairIds, Shards
from dragoman.tokenizer import Tokenizer

STEPS_AHEAD = 2
POLL_S = 0.02
"""Between two looks for files that another process may fetch."""
AGREED_EVERY_S = 1.0
"""Between two exchanges of ranks of which some wait for files."""


class StepBatches(NamedTuple):
    """The work of one rank in one step."""

    step: int
    batches: list[Batch]
    numbers: list[int]
    """Their indices in the global batch, which determine their dropout."""
    tokens: int
    """Target tokens of the whole step, over all ranks."""
    summed_tokens: int
    """Of the ranks whose gradients are added to this one's: what their sum is divided by."""
    most_passes: int
    """Micro-batches of the rank that has the most."""
    amounts: Amounts
    """Amounts of this rank's micro-batches."""


class Loader:
    """Loads steps in order from `first_step` in a thread; used as a context manager."""

    def __init__(
        self,
        shards: Shards,
        plan: BatchPlan,
        tokenizer: Tokenizer,
        group: Group,
        first_step: int,
        dropout: SubwordDropout | None = None,
        summed_ranks: Sequence[int] | None = None,
        arrival: Arrival | None = None,
    ) -> None:
        """`summed_ranks`: whose gradients are added to this rank's; None: those of all ranks.
        `arrival`: of shards that are not all here yet; None: they are."""
        self._summed_ranks = summed_ranks or range(group.ranks)
        self._shards, self._plan, self._tokenizer, self._group = shards, plan, tokenizer, group
        self._dropout = dropout
        self._arrival, self._held_block = arrival, -1
        self._first_step = self._next_step = first_step
        self._awaited_block = -1
        self.waited_for_others_s = 0.0
        """In the last call of `next`: this rank had its shards, and another did not."""
        self._ready: queue.Queue[StepBatches | Exception] = queue.Queue(STEPS_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._produce, args=(first_step,), name="loader", daemon=True
        )

    def __enter__(self) -> "Loader":
        if self._arrival:
            self._arrival.begin(self._first_step)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stopped.set()
        while not self._ready.empty():  # unblocks the thread if it waits for room
            self._ready.get_nowait()
        self._thread.join()

    def next(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> StepBatches | None:
        """Returns the work of the next step; called once all ranks are done with the last one.

        None: a rank is asked to stop, and a rank lacks the shards of the step. Where they arrive
        while steps are taken, this is collective: every rank must call.
        """
        self.waited_for_others_s = 0.0
        if self._arrival:
            self._arrival.passed(self._next_step - 1)
            if not self._all_have_shards(self._arrival, is_asked_to_stop):
                return None
        ready = self._ready.get()
        if isinstance(ready, Exception):
            raise ready
        self._next_step = ready.step + 1
        return ready

    def _all_have_shards(self, arrival: Arrival, is_asked_to_stop: Callable[[], bool]) -> bool:
        """Waits until all ranks have the shards of the next step; False: some rank is asked to
        stop before. A rank that waited on its own could neither be stopped nor save: the others
        would be in the step already."""
        block = self._plan.block_of(self._next_step)
        log = WaitLog()
        while block != self._awaited_block:
            agreed_at = time.monotonic() + AGREED_EVERY_S
            while (
                not arrival.has(block) and not is_asked_to_stop() and time.monotonic() < agreed_at
            ):
                if self._group.local_rank == 0:
                    log.show(lambda: f"{arrival.missing_of(block)}, for step {self._next_step:,}")
                self._stopped.wait(POLL_S)
            lacks, is_stopping = not arrival.has(block), is_asked_to_stop()
            asked_at = time.perf_counter()
            lacking, stopping = self._group.sums([float(lacks), float(is_stopping)])
            if not lacks:
                self.waited_for_others_s += time.perf_counter() - asked_at
            if not lacking:
                self._awaited_block = block
            elif stopping:
                return False
            elif not lacks and self._group.pulse.phase == "data":
                # Should nobody ever go on, it is not this rank that is behind.
                self._group.pulse.enter("agreement")
        return True

    def _produce(self, step: int) -> None:
        while not self._stopped.is_set():
            ready: StepBatches | Exception
            try:
                if not self._has_shards(step):
                    return
                ready = self._load(step)
            except Exception as error:  # handed to the training thread, which raises it
                ready = error
            while not self._stopped.is_set():
                try:
                    self._ready.put(ready, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if isinstance(ready, Exception):
                return
            step += 1

    def _has_shards(self, step: int) -> bool:
        """Waits for the shards of a step, and lets go of all others; False: the loader ends."""
        if not self._arrival or (block := self._plan.block_of(step)) == self._held_block:
            return True
        while not (
            self._arrival.is_here(block) and self._shards.hold(self._plan.blocks[block].shards)
        ):
            if self._stopped.wait(POLL_S):
                return False
        self._held_block = block
        return True

    def _load(self, step: int) -> StepBatches:
        batch = self._plan.batch(step)
        shares = share_out(batch.micro_batches, self._group.ranks)
        numbers = shares[self._group.rank]
        summed = {number for rank in self._summed_ranks for number in shares[rank]}
        if self._dropout:
            loaded = [
                self._resegmented(step, number, micro_batch, with_source=number in numbers)
                for number, micro_batch in enumerate(batch.micro_batches)
            ]
            # Of the whole step, since the gradient is divided by it on every rank.
            tokens_of = [sum(len(pair.target) for pair in pairs) for pairs in loaded]
            own = [loaded[number] for number in numbers]
        else:
            tokens_of = [
                int(self._plan.lengths[micro_batch.pairs, 1].sum())
                for micro_batch in batch.micro_batches
            ]
            own = [self._pairs(batch.micro_batches[number]) for number in numbers]
        batches = [collate(pairs, self._tokenizer.start, self._tokenizer.padding) for pairs in own]
        lengths = [np.array([(len(s), len(t)) for s, t in pairs]) for pairs in own]
        return StepBatches(
            step=step,
            batches=batches,
            numbers=numbers,
            tokens=sum(tokens_of),
            summed_tokens=sum(tokens_of[number] for number in summed),
            most_passes=max(map(len, shares)),
            amounts=amounts_of(lengths),
        )

    def _pairs(self, micro_batch: MicroBatch) -> list[PairIds]:
        return [self._shards[int(pair)] for pair in micro_batch.pairs]

    def _resegmented(
        self, step: int, number: int, micro_batch: MicroBatch, with_source: bool
    ) -> list[PairIds]:
        """Returns the pairs of a micro-batch in other pieces; the source only if it is asked for.

        Whatever is drawn, neither side gets more padded tokens than a plan allows.
        """
        assert self._dropout
        pairs = self._pairs(micro_batch)
        most = self._plan.micro_batch_tokens // len(pairs)
        expected = self._plan.lengths[micro_batch.pairs].max(axis=0)
        widest_source, widest_target = (min(most, widest(int(length))) for length in expected)
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        resegment = self._dropout.resegment
        if with_source:
            sources = [*resegment(sources, widest_source, step, number, "source")]
        return [*map(PairIds, sources, resegment(targets, widest_target, step, number, "target"))]
