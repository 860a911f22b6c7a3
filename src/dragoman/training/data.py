"""What a run learns from: its training pairs, and how they are cut into batches and steps."""

from collections.abc import Sequence
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
from dragoman.storage import Store, parse_address
from dragoman.tokenizer import Tokenizer
from dragoman.training.batch_plan import (
    blocks_in,
    first_block,
    last_planned_step,
    plan_batches,
    subword_dropout_of,
)


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
    config: Config, group: Group, at_end: ExitStack
) -> tuple[PreparedData, Arrival | None]:
    """Opens the prepared data of this host, after fetching what it lacks to plan a run with.

    Training tokens may arrive later, all but those of which samples are taken. Collective: every
    rank must call.
    """
    folder, address = config.prepared_folder, config.data.prepared_from
    fetches = bool(address) and group.local_rank == 0
    stores: list[Store] = []

    def fetch() -> None:
        if fetches:
            stores.append(Store(parse_address(address)))
            at_end.enter_context(fetching(folder))
            fetch_beginning(stores[0], folder)

    all_or_none(group, fetch)
    prepared = all_or_none(group, lambda: PreparedData.open(folder))
    if any(group.gather(bool(address))):
        # Nobody is to be taken for stuck who waits for a shard, or for somebody who does.
        group.pulse.least_patience_s = LONG_PATIENCE_S

    def arrange() -> Arrival | None:
        if not address:
            return None
        shards = prepared.shards("train")
        blocks = blocks_in(shards, config)
        arrival = Arrival(
            folder,
            [[shards.token_files[number] for number in block.shards] for block in blocks],
            prepared.passport.vocabulary,
            stores[0] if fetches else None,
            # What was prepared here is not removed: it may be the only copy.
            config.data.prepared_max_bytes if prepared.is_fetched else 0,
        )
        at_end.callback(arrival.close)
        if blocks and (config.evaluation.train_sample_pairs or config.training.subword_dropout):
            arrival.fetch_now(blocks.index(first_block(blocks, config)))
        return arrival

    return prepared, all_or_none(group, arrange)


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
