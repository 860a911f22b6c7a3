"""The figures that follow from a config before anything runs. Pure, without torch."""

from typing import NamedTuple

from dragoman.config import Config
from dragoman.distributed.wire_bytes import VALUE_BYTES
from dragoman.forecast.sync_modes import QUALITY_COST
from dragoman.model.size import Size, activation_bytes, size_of
from dragoman.training.schedule import peak_of


class Counted(NamedTuple):
    """What the data decides, and not the recipe alone."""

    vocabulary: int
    micro_batches: int
    """Of an update."""
    is_exact: bool
    """They were counted in the prepared data; otherwise sentences were taken to be as usual."""


def figures(config: Config, workers: int, counted: Counted) -> list[tuple[str, str]]:
    """Returns (name, value in words), the most asked for first."""
    training = config.training
    micro_batches, vocabulary = counted.micro_batches, counted.vocabulary
    size = size_of(config.model, vocabulary, config.optimizer, config.sync)
    peak = peak_of(config.schedule, config.model.width, training.steps)
    activations = activation_bytes(config.model, training.micro_batch_limit)
    is_open = training.micro_batch_tokens == "auto"
    shared = -(-micro_batches // workers)
    of_optimizer = (
        {"adamw": "Adam", "schedule-free": "Schedule-Free", "muon": "Muon and Adam"}[
            config.optimizer.kind
        ]
        + (", average" if size.average_bytes else "")
        + (", outer step" if size.outer_bytes else "")
    )
    state = size.state_bytes
    if training.sharding == "full" and workers > 1:
        # Gradients that wait for more micro-batches to be added are not sharded yet.
        state = state // workers + (size.gradient_bytes if shared > 1 else 0)
    return [
        ("parameters", f"{size.parameters:,} with {vocabulary:,} pieces"),
        (
            "FLOPs per token pair",
            f"{training.passes * size.flops_per_token / 1e6:,.1f} million, forward and backward"
            + (", both passes of training.r_drop" if training.passes > 1 else ""),
        ),
        (
            "memory per worker",
            f"about {(state + activations) / 1e6:,.0f} MB: weights, gradients, {of_optimizer} "
            f"{state / 1e6:,.0f}, activations up to {activations / 1e6:,.0f}"
            if not is_open
            else f"{state / 1e6:,.0f} MB for weights, gradients, {of_optimizer}, and for "
            "activations what the worker has: training.micro_batch_tokens is found at the start",
        ),
        (
            "checkpoint",
            f"{size.checkpoint_bytes / 1e6:,.1f} MB, of which translating needs "
            f"{size.weight_bytes / 1e6:,.1f}",
        ),
        *([_on_the_wire(config, size)] if workers > 1 else []),
        *(
            [("cost in quality", cost)]
            if (cost := QUALITY_COST[config.sync.mode]) and workers > 1
            else []
        ),
        (
            "tokens per update",
            f"{training.tokens_per_update:,} target tokens, all workers together",
        ),
        ("micro-batches per update", _micro_batches(config, counted)),
        (
            "accumulation",
            _accumulation(workers, shared, micro_batches) if not is_open else "as little as fits",
        ),
        ("peak learning rate", f"{peak.rate:.3e} at step {peak.step:,} ({config.schedule.kind})"),
        ("ends", "; ".join(_stop_rules(config))),
    ]


def _micro_batches(config: Config, counted: Counted) -> str:
    training = config.training
    if training.micro_batch_tokens == "auto":
        return "as few as fit: training.micro_batch_tokens is found at the start"
    of_tokens = f"of at most {training.pairs_fill_tokens:,} padded tokens"
    if counted.is_exact:
        return f"{counted.micro_batches:,} {of_tokens}, counted in the prepared data"
    return f"about {counted.micro_batches:,} {of_tokens}: an estimate, until the data is prepared"


def _accumulation(workers: int, most: int, micro_batches: int) -> str:
    passes = f"{most:,} micro-batch{'' if most == 1 else 'es'}"
    if workers == 1:
        return f"{passes} before each update, with one worker"
    up_to = "up to " if micro_batches % workers else ""
    return f"{up_to}{passes} per worker before each update, with {workers} workers"


def _on_the_wire(config: Config, size: Size) -> tuple[str, str]:
    megabytes, sync = size.gradient_bytes / 1e6, config.sync
    if sync.mode == "auto":
        most = f"at most {megabytes:,.1f} MB per step"
        return "on the wire", f"{most}; how is found at the start, from the network's speed"
    if sync.is_local and sync.wire:
        window = VALUE_BYTES[sync.wire] * size.parameters / 1e6
        return (
            "weights on the wire",
            f"{window:,.1f} MB once in {sync.window_steps} steps in {sync.wire}, in "
            f"{sync.fragments} fragment(s): {window / sync.window_steps:,.1f} MB per step",
        )
    if sync.mode == "bf16":
        return "gradients on the wire", f"{megabytes / 2:,.1f} MB per step in bf16"
    return "gradients on the wire", f"{megabytes:,.1f} MB per step in fp32"


def _stop_rules(config: Config) -> list[str]:
    training = config.training
    rules = []
    if training.steps is not None:
        tokens = training.steps * training.tokens_per_update
        rules.append(f"after {training.steps:,} steps, about {tokens / 1e6:,.1f} million tokens")
    if training.epochs is not None:
        rules.append(f"after {training.epochs} epochs")
    if training.hours is not None:
        rules.append(f"after {training.hours:g} hours")
    if training.patience is not None:
        rules.append(f"after {training.patience} evaluations without a better score")
    return rules
