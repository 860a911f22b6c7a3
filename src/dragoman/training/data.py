"""What a run learns from: its training pairs, and how they are cut into batches and steps."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dragoman.batches.loader import Loader
from dragoman.batches.plan import BatchPlan
from dragoman.batches.subword_dropout import SubwordDropout
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.group import Group
from dragoman.distributed.pulse import LONG_PATIENCE_S
from dragoman.shards.arrival import Arrival
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from dragoman.shards.remote import fetch_beginning, fetching
from dragoman.storage import Patience, Store, parse_address
from dragoman.tokenizer import Tokenizer
from dragoman.training.batch_plan import (
    blocks_in,
    first_block,
    last_planned_step,
    plan_batches,
    subword_dropout_of,
)
from dragoman.training.interruption import Interruption, StoppedError, unless_stopped

PATIENCE = Patience(retries=100, retry_s=300.0)
"""With a store that a run has read from before: it is more likely restarted than wrong."""


@dataclass(frozen=True)
class TrainingData:
    tokenizer: Tokenizer
    shards: Shards
    plan: BatchPlan
    subword_dropout: SubwordDropout | None
    last_step: int | None
    """Where training.steps or training.epochs end the run; None: neither is set."""
    arrival: Arrival | None = None
    """Of training tokens that are not all here yet."""

    def loader(self, group: Group, first_step: int, summed_ranks: Sequence[int]) -> Loader:
        return Loader(
            self.shards,
            self.plan,
            self.tokenizer,
            group,
            first_step,
            self.subword_dropout,
            summed_ranks,
            self.arrival,
        )


def open_prepared(
    config: Config, group: Group, at_end: ExitStack, interruption: Interruption
) -> tuple[PreparedData, Arrival | None]:
    """Opens the prepared data of this host, after fetching what it lacks to plan a run with.

    Training tokens may arrive later, all but those of which samples are taken. Where any rank
    fetches, all have an arrival, since they wait for each other's data. Raises StoppedError where a
    rank is asked to stop while data is fetched. Collective: every rank must call.
    """
    folder, address = config.prepared_folder, config.data.prepared_from
    fetches = bool(address) and group.local_rank == 0

    def open_stores() -> tuple[Store | None, Store | None]:
        if not fetches:
            return None, None
        stores = [Store(parse_address(address), each) for each in (Patience(), PATIENCE)]
        at_end.enter_context(fetching(folder))
        for store in stores:
            at_end.callback(store.close)  # before another process may fetch
        return stores[0], stores[1]

    def fetch(work: Callable[[], object]) -> None:
        what = f"prepared data from {address}"
        all_or_none(group, lambda: unless_stopped(work, what, interruption) if fetches else None)
        if any(group.gather(fetches and interruption.is_requested)):
            raise StoppedError

    store, patient_store = all_or_none(group, open_stores)
    fetch(lambda: fetch_beginning(store, folder) if store else None)
    prepared = all_or_none(group, lambda: PreparedData.open(folder))
    if not any(group.gather(bool(address))):
        return prepared, None
    # Nobody is to be taken for stuck who waits for a shard, or for somebody who does.
    group.pulse.least_patience_s = LONG_PATIENCE_S

    def arrange() -> tuple[Arrival, int | None]:
        shards = prepared.shards("train")
        blocks = blocks_in(shards, config)
        arrival = Arrival(
            folder,
            [[shards.token_files[number] for number in block.shards] for block in blocks],
            prepared.passport.vocabulary,
            patient_store,
            # What was prepared here is not removed: it may be the only copy.
            config.data.prepared_max_bytes if prepared.is_fetched else 0,
        )
        at_end.callback(arrival.close)
        samples = config.evaluation.train_sample_pairs or config.training.subword_dropout
        return arrival, blocks.index(first_block(blocks, config)) if blocks and samples else None

    arrival, sampled = all_or_none(group, arrange)
    # On every rank: that their recipes ask for the same samples is seen later.
    fetch(lambda: arrival.fetch_now(sampled) if sampled is not None else None)
    return prepared, arrival


def open_training_data(
    prepared: PreparedData, config: Config, group: Group, arrival: Arrival | None = None
) -> TrainingData:
    """Opens the training pairs and plans their batches. Collective: every rank must call."""
    tokenizer = all_or_none(group, prepared.tokenizer)
    shards = all_or_none(group, lambda: prepared.shards("train"))
    dropout = all_or_none(group, lambda: subword_dropout_of(tokenizer, config.training))
    plan = all_or_none(group, lambda: plan_batches(shards, config, group.ranks, dropout))
    last_step = last_planned_step(config, plan)
    if arrival:
        arrival.follow(plan.blocks_from, last_step)
    return TrainingData(tokenizer, shards, plan, dropout, last_step, arrival)
