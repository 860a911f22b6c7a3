"""Finds the largest micro-batch that fits into memory: `training.micro_batch_tokens = "auto"`.

Every rank tries batches as bad as any of the corpus, larger and larger ones, and the smallest
answer holds for all. It is found once in the life of a run and then written into its config.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from dragoman.batches.blocks import Block
from dragoman.batches.collate import Batch, collate
from dragoman.batches.plan import Lengths
from dragoman.batches.subword_dropout import widest
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.devices import memory_peak_bytes, reset_memory_peak
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.model.memory import USED_SHARE, no_room, room_on_cpu
from dragoman.model.products import computing_in
from dragoman.model.size import size_of
from dragoman.rundir import RunDir
from dragoman.shards.files import PairIds, Shards
from dragoman.shards.passport import PreparedData
from dragoman.sync import free_memory, is_out_of_memory
from dragoman.training.batch_plan import (
    blocks_in,
    expected_lengths,
    micro_batch_for,
    subword_dropout_of,
)
from dragoman.training.claim import found_before
from dragoman.training.updater import initial_model

logger = logging.getLogger(__name__)

WORTH_TRYING = 1.1
"""A batch that is not larger than the last one by this factor is not tried any more."""

Measure = Callable[[int], int | None]


class Room(NamedTuple):
    """What the weights, gradients and activations of one worker may take."""

    bytes: int
    workers: int


def find_micro_batch(config: Config, run: RunDir, prepared: PreparedData, group: Group) -> Config:
    """Returns the config with a number where it was auto, the same on every rank.

    Its precision is one that all ranks have.

    Collective: every rank must call.
    """
    if config.training.micro_batch_tokens != "auto":
        return config
    before = all_or_none(group, lambda: found_before(run))
    known = [tokens for tokens in group.gather(before) if tokens]
    if known:  # a host that is new to the run takes what the others have
        return config.with_training(micro_batch_tokens=known[0])
    shards = all_or_none(group, lambda: prepared.shards("train"))
    lengths = all_or_none(group, lambda: _lengths(config, prepared, shards))
    if not len(lengths):  # refused when batches are planned
        return config.with_training(micro_batch_tokens=config.training.micro_batch_limit)
    place = [group.host, str(group.device)]
    workers = group.gather(place).count(place)
    vocabulary = prepared.passport.vocabulary
    room = Room(room_bytes(config, vocabulary, group, workers), workers)
    group.gather(None)  # the others have read what is free before anything is taken
    found = all_or_none(group, lambda: _largest(config, lengths, vocabulary, group, room))
    blocks = blocks_in(shards, config)
    tokens = for_all_ranks(config, lengths, min(group.gather(found)), group.ranks, blocks)
    if group.leads:
        logger.info(f"training.micro_batch_tokens = {tokens}: the most that fits on every worker")
    return config.with_training(micro_batch_tokens=tokens)


def largest_that_fits(measure: Measure, least: int, most: int, fixed: int, room: int) -> int | None:
    """Returns about the most tokens whose bytes fit into `room`; None: not even the least do.

    `measure` returns the bytes that a batch needs, or None where memory has run out. Where running
    out would end the process, it must not come to that: no size is tried that would not fit if
    all but `fixed` bytes grew with the tokens.
    """
    tokens, needed = least, measure(least)
    if needed is None or needed > room:
        return None
    while tokens < most:
        larger = min(most, 2 * tokens, tokens * (room - fixed) // max(1, needed - fixed))
        if larger < min(most, WORTH_TRYING * tokens):
            break
        next_needed = measure(larger)
        if next_needed is None or next_needed > room:
            most = (tokens + larger) // 2
        else:
            tokens, needed = larger, next_needed
    return tokens


def worst_batch(longest: tuple[int, int], tokens: int) -> Batch:
    """Returns pairs of the longest lengths, of so many tokens on the longer side or more.

    Nothing in the corpus needs more: it has no longer pairs, and the shorter side is as full.
    """
    pair = PairIds(*(np.zeros(length, np.int64) for length in longest))
    # One source is shorter, since attention with a mask may need more.
    shorter = PairIds(pair.source[: max(1, longest[0] - 1)], pair.target)
    pairs = -(-tokens // max(longest))
    return collate([shorter, *[pair] * (pairs - 1)], start=0, padding=0)


def room_bytes(config: Config, vocabulary: int, group: Group, workers: int) -> int:
    """Returns what weights, gradients and activations may take; `workers` share the device."""
    size = size_of(config.model, vocabulary, config.optimizer, config.sync)
    if group.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(group.device)
        kept = size.optimizer_bytes + size.average_bytes + size.outer_bytes
        return int(USED_SHARE * free / workers) - kept
    return room_on_cpu(size, workers)


def for_all_ranks(
    config: Config, lengths: Lengths, tokens: int, ranks: int, blocks: Sequence[Block] = ()
) -> int:
    """Returns fewer tokens where a step would not have a micro-batch for every rank."""
    settings = config.training
    least = settings.passes * int(lengths.max())
    return micro_batch_for(settings, lengths, tokens, ranks, blocks) or min(tokens, least)


def _lengths(config: Config, prepared: PreparedData, shards: Shards) -> Lengths:
    dropout = subword_dropout_of(prepared.tokenizer(), config.training)
    return expected_lengths(shards, config, dropout)


def _largest(config: Config, lengths: Lengths, vocabulary: int, group: Group, room: Room) -> int:
    """Returns this rank's answer; refuses a corpus of which one pair does not fit."""
    settings = config.training
    source, target = (int(length) for length in lengths.max(axis=0))
    if settings.subword_dropout:
        source, target = widest(source), widest(target)
    totals = lengths.sum(axis=0, dtype=np.int64)
    # An update has no more tokens on its longer side, but for a little padding.
    update = 1.25 * settings.tokens_per_update * max(1.0, totals[0] / max(1, totals[1]))
    least = settings.passes * max(source, target)
    most = max(least, settings.passes * int(update) // group.ranks)
    size = size_of(config.model, vocabulary)
    fixed = size.weight_bytes + size.gradient_bytes
    found = None
    if fixed < room.bytes:
        with _Trial(config, vocabulary, (source, target), group.device) as trial:
            found = largest_that_fits(trial.measure, least, most, fixed, room.bytes)
    if found is None:
        pieces = max(source, target) if fixed < room.bytes else None
        raise no_room(pieces, room.bytes, room.workers)
    return found


class _Trial:
    """A model to try batches with; its memory is free again at the end."""

    def __init__(
        self, config: Config, vocabulary: int, longest: tuple[int, int], device: torch.device
    ) -> None:
        self._settings, self._longest, self._device = config.training, longest, device
        free_memory(device)
        reset_memory_peak(device)
        self._before = memory_peak_bytes(device)
        model = initial_model(config, vocabulary)
        settings = config.training
        self._objective = Objective(model, settings.label_smoothing, settings.r_drop).to(device)

    def __enter__(self) -> "_Trial":
        return self

    def __exit__(self, *_: object) -> None:
        del self._objective
        free_memory(self._device)
        reset_memory_peak(self._device)

    def measure(self, tokens: int) -> int | None:
        batch = worst_batch(self._longest, tokens // self._settings.passes)
        ran_out = False
        reset_memory_peak(self._device)
        try:
            with computing_in(self._settings.precision, self._device.type):
                smoothed = self._objective(batch.to(self._device)).smoothed
            smoothed.backward()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            ran_out = True
        needed = int(memory_peak_bytes(self._device) - self._before)
        smoothed = None
        free_memory(self._device)
        return None if ran_out else needed
