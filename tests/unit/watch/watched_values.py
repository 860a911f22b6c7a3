"""Values of watched runs, made up."""

import math
from collections.abc import Sequence

from dragoman.report.content import HostCurve, Report
from dragoman.watch.content import (
    Happening,
    Now,
    RankNow,
    RecentSteps,
    VerdictChange,
    Watched,
)

AT = 1_700_000_600.0
HOSTS = ("alder", "birch")
PARTS_S = {"data": 0.01, "forward": 0.4, "backward": 0.9, "communication": 0.6, "optimizer": 0.05}


def now(**changes: object) -> Now:
    """Of a run of two workers in the middle of its steps."""
    fields: dict[str, object] = {
        "name": "tiny",
        "run": "runs/tiny",
        "at": AT,
        "state": "training",
        "sentence": "It is training: step 300 of 1,000 is done.",
        "trouble": "",
        "attempt": 1,
        "ranks_expected": 2,
        "step": 300,
        "planned_steps": 1000,
        "epoch": 1.5,
        "loss": 3.25,
        "learning_rate": 4e-4,
        "tokens_per_s": 12_345.6,
        "bleu": 21.4,
        "bleu_step": 280,
        "left_s": 1400.0,
        "left_low_s": 1300.0,
        "left_high_s": 1500.0,
        "spent": 12.5,
        "currency": "USD",
        "ranks": [rank(place, host) for place, host in enumerate(HOSTS)],
        "recent": recent(),
        "hosts": [curve for host in HOSTS for curve in host_curves(host)],
        "happenings": [
            Happening(at=AT - 500, text="attempt 1 began at step 1 with 2 ranks", health="fact"),
            Happening(at=AT - 20, text="evaluated at step 280: BLEU 21.4", health="good"),
        ],
    }
    return Now.model_validate(fields | changes)


def rank(number: int, host: str, **changes: object) -> RankNow:
    fields: dict[str, object] = {
        "rank": number,
        "host": host,
        "device": "cuda:0",
        "step": 300,
        "silent_s": 0.5,
        "step_s": sum(PARTS_S.values()),
        "parts_s": PARTS_S,
    }
    return RankNow.model_validate(fields | changes)


def recent(steps: int = 120) -> RecentSteps:
    numbers = range(300 - steps, 300)
    return RecentSteps(
        at=[AT - 2.0 * (300 - number) for number in numbers],
        step=[*numbers],
        loss=[2.0 + 20.0 / math.sqrt(number) + 0.1 * math.sin(number) for number in numbers],
        step_s=[1.96 + 0.05 * math.sin(1.7 * number) for number in numbers],
    )


def host_curves(host: str) -> list[HostCurve]:
    at = [AT - 240.0 + 2.0 * place for place in range(120)]
    shift = len(host) + ord(host[0])

    def curve(sensor: str, unit: str, middle: float, swing: float) -> HostCurve:
        mean = [middle + swing * math.sin(0.21 * place + shift) for place in range(len(at))]
        return HostCurve(
            host=host,
            sensor=sensor,
            unit=unit,
            at=at,
            mean=mean,
            lowest=[value - swing / 4 for value in mean],
            highest=[value + swing / 4 for value in mean],
        )

    return [
        curve("cpu", "%", 35.0, 8.0),
        curve("memory", "%", 60.0, 1.0),
        curve("gpu 0 utilization", "%", 90.0, 8.0),
        curve("network sent", "bytes/s", 1.1e8, 1e7),
        curve("network received", "bytes/s", 1.0e8, 1e7),
    ]


def changes_of(report: Report | None, at: float = AT - 300) -> list[VerdictChange]:
    """The verdicts as they were found when watching began."""
    return [
        VerdictChange(
            key=answer.key,
            title=answer.key,
            verdict=answer.verdict,
            health=answer.health,
            sentence=answer.plain,
            before="",
            at=at,
        )
        for answer in (report.answers if report else [])
    ]


def watched(
    report: Report | None = None, changes: Sequence[VerdictChange] | None = None, **of_now: object
) -> Watched:
    found = changes_of(report) if changes is None else list(changes)
    return Watched(now=now(**of_now), report=report, changes=found)


def with_verdict(report: Report, key: str, **changes: object) -> Report:
    """The report with another answer to one question."""
    answers = [
        answer.model_copy(update=changes) if answer.key == key else answer
        for answer in report.answers
    ]
    return report.model_copy(update={"answers": answers})


class FakeWatch:
    """Shows what it is given; raises what it is given, if that is an error."""

    def __init__(self, shown: Watched | Exception) -> None:
        self.shown = shown
        self.is_closed = False

    def refresh(self) -> Watched:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown

    def close(self) -> None:
        self.is_closed = True
