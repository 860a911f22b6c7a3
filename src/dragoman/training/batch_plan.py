"""How the training pairs are cut into batches and steps, and where they end the run.

Without torch: forecasts need it on machines that train nothing.
"""

import sys
from collections.abc import Sequence

import numpy as np

from dragoman.batches.blocks import Block, block_order, blocks_of
from dragoman.batches.merges import Merges
from dragoman.batches.plan import BatchPlan, Lengths
from dragoman.batches.shapes import synthetic_lengths
from dragoman.batches.subword_dropout import SubwordDropout, growth
from dragoman.config import Config, TrainingSettings
from dragoman.errors import UserError
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
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
    blocks = blocks_in(shards, config)
    lengths = expected_lengths(shards, config, dropout, settings.pairs_fill_tokens)
    plan = BatchPlan(
        *(lengths, settings.tokens_per_update, settings.pairs_fill_tokens, settings.seed), blocks
    )
    refuse_idle_workers(plan, ranks, settings)
    return plan


def plan_prepared(prepared: PreparedData, config: Config, ranks: int) -> BatchPlan:
    """Returns a plan for forecasts. Where tokens may not have been fetched yet, words keep their
    pieces in it: how sentences grow with subword dropout is read from tokens."""
    dropout = subword_dropout_of(prepared.tokenizer(), config.training)
    known = None if prepared.is_fetched else dropout
    return plan_batches(prepared.shards("train"), config, ranks, known)


def blocks_in(shards: Shards, config: Config) -> tuple[Block, ...]:
    return blocks_of(shards.pairs_by_shard, config.data.block_pairs)


def first_block(blocks: Sequence[Block], config: Config) -> Block:
    """Returns the block with which the first epoch begins, of which samples are taken: those of all
    the data would need all of it on every host, before the first step."""
    return blocks[block_order(config.training.seed, 0, len(blocks))[0]]


def usual_plan(config: Config) -> BatchPlan:
    """Returns a plan of sentences as they usually are, for a corpus that is not there yet."""
    settings = config.training
    longest = min(config.data.max_length, settings.pairs_fill_tokens)
    lengths = synthetic_lengths(settings.tokens_per_update, longest)
    return BatchPlan(lengths, settings.tokens_per_update, settings.pairs_fill_tokens, settings.seed)


def refuse_idle_workers(plan: BatchPlan, ranks: int, settings: TrainingSettings) -> None:
    """Refuses more workers than micro-batches, with the change that would give each of them one."""
    has = plan.micro_batches_per_step
    if ranks <= has:
        return
    tokens = settings.micro_batch_limit
    if smaller := micro_batch_for(settings, plan.lengths, tokens, ranks, plan.blocks):
        change = f"a new run with training.micro_batch_tokens = {smaller} (now {tokens})"
    elif larger := _update_for(settings, plan, ranks):
        now = settings.tokens_per_update
        change = f"a new run with training.tokens_per_update = {larger} (now {now})"
    else:
        change = "a new run with more training pairs"
    number = f"{has} micro-batch{'' if has == 1 else 'es'}"
    raise UserError(
        f"{ranks} workers, but a step has only {number}, and each worker needs one of its own; "
        f"start {has} worker{'' if has == 1 else 's or fewer'}, or {change}"
    )


def micro_batch_for(
    settings: TrainingSettings,
    lengths: Lengths,
    tokens: int,
    ranks: int,
    blocks: Sequence[Block] = (),
) -> int | None:
    """Returns micro_batch_tokens, `tokens` or less, with which a step has a micro-batch for every
    rank; None: no size does that."""
    least = settings.passes * int(lengths.max())
    while True:
        has = _micro_batches(settings, lengths, tokens, settings.tokens_per_update, blocks)
        if has >= ranks:
            return tokens
        if tokens <= least:
            return None
        tokens = max(least, tokens * 7 // 8)


def _update_for(settings: TrainingSettings, plan: BatchPlan, ranks: int) -> int | None:
    """Returns tokens_per_update with which a step has a micro-batch for every rank, or None."""
    tokens, most = 2 * settings.tokens_per_update, int(plan.lengths[:, 1].sum())
    limit = settings.micro_batch_limit
    while tokens <= most:
        if _micro_batches(settings, plan.lengths, limit, tokens, plan.blocks) >= ranks:
            return tokens
        tokens *= 2
    return None


def _micro_batches(
    settings: TrainingSettings,
    lengths: Lengths,
    tokens: int,
    tokens_per_update: int,
    blocks: Sequence[Block],
) -> int:
    """Returns how many micro-batches a step would have; 0: the pairs are too few or too long."""
    most = tokens // settings.passes
    try:
        plan = BatchPlan(np.minimum(lengths, most), tokens_per_update, most, settings.seed, blocks)
    except UserError:
        return 0
    return plan.micro_batches_per_step


def expected_lengths(
    shards: Shards, config: Config, dropout: SubwordDropout | None, longest: int = sys.maxsize
) -> Lengths:
    """Returns the lengths with which batches are planned; `longest` as in `Growth.planned`."""
    lengths = shards.lengths()
    if not dropout or not len(lengths):
        return lengths
    numbers = first_block(blocks_in(shards, config), config).numbers()
    return growth(shards, dropout, numbers).planned(lengths, longest)


def last_planned_step(config: Config, plan: BatchPlan) -> int | None:
    """Returns the first step at which training.steps or training.epochs end the run, if any."""
    limits = []
    if config.training.steps is not None:
        limits.append(config.training.steps)
    if config.training.epochs is not None:
        limits.append(config.training.epochs * plan.steps_per_epoch)
    return min(limits, default=None)
