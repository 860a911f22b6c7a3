"""How well devices are used: what was measured comes in, a verdict in words goes out. Pure."""

import math
from dataclasses import dataclass

from dragoman.diagnosis.phrasing import listed, percent
from dragoman.diagnosis.speed.bottleneck import Shares

FULLY = 0.85
"""Share of the step spent computing."""
MOSTLY_WAITING = 0.5
POOR_EFFICIENCY = 0.20
"""Of what the device reaches in large matrix products, while it computes; transformers of this
size reach 35 to 60 %."""
GOOD_EFFICIENCY = 0.35
LOW_POWER = 0.5
"""Of the limit: a GPU that computes in earnest draws more."""
AT_THE_LIMIT = 0.95
LOOKS_BUSY = 0.80
MORE_THAN_COMPUTING = 0.15
"""A driver's utilisation that is high, and so much more than computing, needs an explanation."""
MUCH_FOREIGN = 0.15
TOLD_SHARE = 0.01
REST_SHARE = 0.05
"""A message and some lines of Python take a percent or two: more is worth a word."""
IDLE_CORES = 0.5
"""CPU runs: with so few cores in use, more threads or workers fit."""


@dataclass(frozen=True)
class Use:
    """Shares, 0 to 1. NaN: not recorded."""

    computing: float
    """Of the step, in the mean over ranks."""
    flops: float
    """Model FLOPs utilisation: needed over possible in the same time."""
    driver: float
    power: float
    """Drawn over the limit."""
    cpu: float
    """Of all cores of the hosts."""
    foreign_cpu: float
    """Of these, what programs take that are not of this run."""
    is_gpu: bool

    @property
    def efficiency(self) -> float:
        """While it computes."""
        return self.flops / self.computing if self.computing else math.nan


def verdict_of(use: Use) -> str | None:
    """None: nothing that was recorded tells."""
    if math.isnan(use.computing):
        if math.isnan(use.flops):
            return None
        if use.flops >= GOOD_EFFICIENCY:
            return "fully used"
        return "partly used" if use.flops >= POOR_EFFICIENCY else "mostly waiting"
    if use.computing < MOSTLY_WAITING:
        return "mostly waiting"
    if use.computing < FULLY or use.efficiency < POOR_EFFICIENCY:
        return "partly used"
    if math.isnan(use.flops) and use.is_gpu and use.power < LOW_POWER:
        return "partly used"
    return "partly used" if not use.is_gpu and use.cpu < IDLE_CORES else "fully used"


def answer_in_words(use: Use, shares: Shares) -> str:
    devices = "GPUs" if use.is_gpu else "CPUs"
    sentences = []
    if not math.isnan(use.computing):
        waits = [
            f"{percent(share)} waiting for {what}"
            for what, share in _waits(shares).items()
            if share >= TOLD_SHARE
        ]
        if shares.rest >= REST_SHARE:
            waits.append(f"{percent(shares.rest)} in what is not timed by itself")
        also = f"; the rank that waits longest spends {listed(waits)}" if waits else ""
        sentences.append(
            f"In the mean over ranks the {devices} compute during {percent(use.computing)} of a "
            f"step{also}."
        )
    if not math.isnan(use.flops):
        of_it = ""
        if not math.isnan(use.efficiency):
            of_it = f", {percent(use.efficiency)} while they compute"
        sentences.append(
            f"Model FLOPs utilisation is {percent(use.flops)} of what they reach in large matrix "
            f"products{of_it}."
        )
    sentences += _of_sensors(use, shares)
    return " ".join(sentences)


def _waits(shares: Shares) -> dict[str, float]:
    """What a step waits for -> its share, but for those that were not recorded."""
    found = {
        "the network": shares.network,
        "the slowest rank": shares.straggling,
        "data": shares.data,
        "a checkpoint's copy": shares.checkpoint,
    }
    return {what: share for what, share in found.items() if not math.isnan(share)}


def _of_sensors(use: Use, shares: Shares) -> list[str]:
    found = []
    in_collectives = shares.network + shares.straggling
    looks_busier = use.driver - use.computing >= MORE_THAN_COMPUTING
    if use.driver >= LOOKS_BUSY and looks_busier and in_collectives >= MORE_THAN_COMPUTING:
        found.append(
            f"The driver shows {percent(use.driver)} utilisation although they wait: a collective "
            "that waits for other nodes is a kernel that spins, and counts as busy."
        )
    elif not math.isnan(use.driver):
        found.append(f"The driver shows {percent(use.driver)} utilisation.")
    if use.power >= AT_THE_LIMIT:
        found.append(f"They run at their power limit ({percent(use.power)}), which bounds them.")
    elif not math.isnan(use.power):
        found.append(f"They draw {percent(use.power)} of the power that they may.")
    if not math.isnan(use.cpu) and not use.is_gpu:
        others = ""
        if use.foreign_cpu >= MUCH_FOREIGN:
            others = f", {percent(use.foreign_cpu)} with other programs than this run"
        found.append(f"The processors of the hosts are {percent(use.cpu)} busy{others}.")
    return found


def advice_on(use: Use, verdict: str, shares: Shares) -> str:
    if verdict == "fully used":
        if use.power >= AT_THE_LIMIT:
            return "A higher power limit, where cooling and contract allow it, would speed them up."
        return ""
    waits = _waits(shares)
    largest = max(waits, key=lambda what: waits[what])
    if not math.isnan(use.computing) and use.computing < FULLY and waits[largest] >= 0.05:
        return f"Most of the waiting is for {largest}: see the answer about the network."
    if use.efficiency < POOR_EFFICIENCY or (use.is_gpu and use.power < LOW_POWER):
        return (
            "They are never idle and yet do little: the products are too small. Raise "
            "training.micro_batch_tokens as far as memory allows, or use training.precision bf16."
        )
    if not use.is_gpu and use.cpu < IDLE_CORES:
        return "Cores stand idle: start more workers, or let each use more threads."
    return ""
