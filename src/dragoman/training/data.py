"""What a run learns from: its training pairs, and how they are cut into batches and steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.batches.loader import Loader
from dragoman.batches.plan import BatchPlan
from dragoman.batches.subword_dropout import SubwordDropout
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.group import Group
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from dragoman.tokenizer import Tokenizer
from dragoman.training.batch_plan import last_planned_step, plan_batches, subword_dropout_of


@dataclass(frozen=True)
class TrainingData:
    tokenizer: Tokenizer
    shards: Shards
    plan: BatchPlan
    subword_dropout: SubwordDropout | None
    last_step: int | None
    """Where training.steps or training.epochs end the run; None: neither is set."""

    def loader(self, group: Group, first_step: int, summed_ranks: Sequence[int]) -> Loader:
        return Loader(
            self.shards,
            self.plan,
            self.tokenizer,
            group,
            first_step,
            self.subword_dropout,
            summed_ranks,
        )


def open_training_data(prepared: PreparedData, config: Config, group: Group) -> TrainingData:
    """Opens the training pairs and plans their batches. Collective: every rank must call."""
    tokenizer = all_or_none(group, prepared.tokenizer)
    shards = all_or_none(group, lambda: prepared.shards("train"))
    dropout = all_or_none(group, lambda: subword_dropout_of(tokenizer, config.training))
    plan = all_or_none(group, lambda: plan_batches(shards, config, group.ranks, dropout))
    return TrainingData(tokenizer, shards, plan, dropout, last_planned_step(config, plan))
