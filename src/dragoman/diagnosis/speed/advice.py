"""Advice that several answers give about the same cause. Pure."""

from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Late, data_makes_late

SAVE_LESS_OFTEN = (
    "Saving holds up the steps behind it: save less often (checkpoints.every_steps, or a larger "
    "checkpoints.lost_minutes)."
)
START_AGAIN = "Let something start the run again when it breaks off: most was lost to waiting."
SAVE_MORE_OFTEN = "Save more often: checkpoints.lost_minutes bounds how much work a fault can cost."


def on_slow_data(whose: str = "") -> str:
    """Returns what to do about data that comes late to all ranks, or to some of them."""
    to_whom = f" for {whose}" if whose else ""
    return (
        f"See what the processes that read the data{to_whom} wait for: the disk, the network that "
        "the files come over, or a processor that others use too."
    )


def on_lateness(late: Late, split: StepSplit) -> str:
    """Returns what to do about ranks that the others wait for."""
    if data_makes_late(split):
        return on_slow_data(late.who if late.is_always_the_same else "")
    if late.is_always_the_same:
        where = f"uses the device of {late.who}" if late.are_ranks else f"runs on {late.who}"
        if late.are_several:
            return f"See what else {where}, whether they are throttled, or replace them."
        return f"See what else {where}, whether it is throttled, or replace it."
    if late.early:
        return "Hosts of equal speed would not wait for each other; nothing else is wrong."
    return (
        "See what else runs on the hosts; micro-batches that differ much in size also make ranks "
        "wait for each other."
    )


def on_faults(faults: FaultHistory) -> str:
    down_s = sum(fault.down_s for fault in faults.faults)
    return START_AGAIN if down_s > faults.cost_s / 2 else SAVE_MORE_OFTEN
