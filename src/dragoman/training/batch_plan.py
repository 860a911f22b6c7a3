"""How the training pairs are cut into batches and steps, and where they end the run.

Without torch: forecasts need it on machines that train nothing.
"""

import sys

from dragoman.batches.merges import Merges
from dragoman.batches.plan import BatchPlan, Lengths
from dragoman.batches.shapes import synthetic_lengths
from dragoman.batches.subword_dropout import SubwordDropout, growth
from dragoman.config import Config, TrainingSettings
from dragoman.errors import UserError
from dragoman.shards.files import Shards
from dragoman.tokenizer import Tokenizer


def subword_dropout_of(tokenizer: Tokenizer, settings: TrainingSettings) -> SubwordDropout | None:
    """Returns what re-segments words, or None; refuses tokenizers that have no merges."""
    if not settings.subword_dropout:
        return None
    merges = Merges(tokenizer.model, f"training.subword_dropout = {settings.subword_dropout}")
    return SubwordDropout(merges, settings.subword_dropout, settings.seed)


def plan_batches(
    shards: Shards, config: Config, ranks: int, dropout: SubwordDropout | None = None
) -> BatchPlan:
    settings = config.training
    longest = int(shards.lengths().max(initial=0))
    if settings.passes > 1 and settings.pairs_fill_tokens < longest:
        raise UserError(
            f"the longest training pair has {longest} pieces on one side, and twice that, as "
            f"training.r_drop = {settings.r_drop} computes it, is more than "
            f"training.micro_batch_tokens = {settings.micro_batch_limit}; raise that, or lower "
            "data.max_length"
        )
    lengths = expected_lengths(shards, dropout, settings.pairs_fill_tokens)
    plan = BatchPlan(lengths, settings.tokens_per_update, settings.pairs_fill_tokens, settings.seed)
    refuse_idle_workers(plan, ranks, settings)
    return plan


def usual_plan(config: Config) -> BatchPlan:
    """Returns a plan of sentences as they usually are, for a corpus that is not there yet."""
    settings = config.training
    longest = min(config.data.max_length, settings.pairs_fill_tokens)
    lengths = synthetic_lengths(settings.tokens_per_update, longest)
    return BatchPlan(lengths, settings.tokens_per_update, settings.pairs_fill_tokens, settings.seed)


def refuse_idle_workers(plan: BatchPlan, ranks: int, settings: TrainingSettings) -> None:
    if ranks > plan.micro_batches_per_step:
        raise UserError(
            f"{ranks} workers, but a step has only {plan.micro_batches_per_step} micro-batches to "
            "share out; start fewer workers, or lower training.micro_batch_tokens "
            f"(now {settings.micro_batch_limit}) in a new run"
        )


def expected_lengths(
    shards: Shards, dropout: SubwordDropout | None, longest: int = sys.maxsize
) -> Lengths:
    """Returns the lengths with which batches are planned; `longest` as in `Growth.planned`."""
    lengths = shards.lengths()
    if not dropout or not len(lengths):
        return lengths
    return growth(shards, dropout).planned(lengths, longest)


def last_planned_step(config: Config, plan: BatchPlan) -> int | None:
    """Returns the first step at which training.steps or training.epochs end the run, if any."""
    limits = []
    if config.training.steps is not None:
        limits.append(config.training.steps)
    if config.training.epochs is not None:
        limits.append(config.training.epochs * plan.steps_per_epoch)
    return min(limits, default=None)
