"""`sync.mode` auto: measures network and computing, chooses how to synchronize, and looks again.

The choice is the mildest mode whose forecast leaves less than a quarter of computing exposed. It
is part of the run's state: a run that is resumed keeps it. While the run goes on, rank 0 watches
how long steps wait for the network. It asks all ranks to measure again when that is more than was
promised, and now and then where a milder mode might do by now.
"""

import statistics
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.batches.loader import StepBatches
from dragoman.config import Config, SyncSettings
from dragoman.distributed.group import Group
from dragoman.forecast.sync_modes import (
    LARGEST_SHARE,
    Forecast,
    Link,
    Workload,
    bucket_mb_for,
    choose,
    forecast,
    in_a_word,
    ladder_for,
)
from dragoman.sync.link import measure_link
from dragoman.telemetry.events import StepDone, SyncChosen
from dragoman.training.out_of_memory import smaller_pieces
from dragoman.training.recorder import Recorder
from dragoman.training.updater import Updater

REHEARSALS = 3
"""Of a step's computing; the first one is warm-up."""
WATCHED_STEPS = 24
"""Over which the watch takes means: a multiple of all windows of the ladder."""
WORTH_LOOKING = 1.5
"""Times the share of computing that may be exposed."""
CLEARLY_WORSE = 2.0
"""Times the waiting for which a look has found nothing better: it is worth another one at once."""
LOOK_AGAIN_S = 600.0
"""After which a faster network would be noticed."""
MOST_PATIENCE = 5
"""Doublings."""
MILDER_SHARE = LARGEST_SHARE / 2
"""What a milder mode may leave exposed to be gone back to: less, or two would take turns."""


class Computing(NamedTuple):
    """Of a step on one rank."""

    compute_s: float
    backward_s: float
    """Of the last micro-batch, beside which gradients can travel."""


class Choice(NamedTuple):
    link: Link
    workload: Workload
    forecasts: list[Forecast]
    chosen: Forecast

    def event(self, step: int) -> SyncChosen:
        return SyncChosen(
            step=step,
            settings=self.chosen.settings.model_dump(mode="json"),
            link_bytes_per_s=self.link.bytes_per_s,
            link_latency_s=self.link.latency_s,
            compute_s=self.workload.compute_s,
            exposed_s={in_a_word(each.settings): each.exposed_s for each in self.forecasts},
        )

    def lines(self) -> list[str]:
        """Returns what a person wants to know of it."""
        rate = self.link.bytes_per_s * 8 / 1e6
        width = max(len(in_a_word(each.settings)) for each in self.forecasts)
        return [
            f"sync.mode = auto: hosts send {rate:,.0f} Mbit/s, a small message takes "
            f"{self.link.latency_s * 1e3:,.1f} ms, and a step computes for "
            f"{self.workload.compute_s:,.2f} s; forecasts:",
            *(
                f"  {'->' if each is self.chosen else '  '} {in_a_word(each.settings):<{width}}"
                f"{each.bytes_per_step / 1e6:>9,.1f} MB a step, waits {each.exposed_s:,.2f} s"
                for each in self.forecasts
            ),
        ]


def rehearse(updater: Updater, work: StepBatches, group: Group, recorder: Recorder) -> Computing:
    """Measures a step's computing on this rank; its gradients are discarded.

    In smaller pieces where any rank runs out of memory, as the step itself will be. Collective:
    every rank must call.
    """
    found: list[Computing] = []
    pieces = 1
    while len(found) < REHEARSALS:
        gradients = updater.gradients(work, pieces)
        if any(group.gather(gradients.ran_out)):
            pieces = smaller_pieces(group, recorder, work, pieces, gradients.ran_out)
            updater.sync.renew()
            found.clear()
            continue
        parts = gradients.parts_s
        computing_s = parts["forward"] + parts["backward"]
        backward_s = parts["backward"] / max(1, len(work.batches) * pieces)
        found.append(Computing(computing_s, backward_s))
    updater.sync.begin_step(0)
    return min(found[1:])


def look(
    config: Config, updater: Updater, own: Computing, hosts: Sequence[str], group: Group
) -> Choice:
    """Measures the network and forecasts all modes. Collective: every rank must call."""
    if updater.outer:
        updater.outer.wait()  # fragments on their way would make the link look slower than it is
    parameters = sum(parameter.numel() for parameter in updater.model.parameters())
    ranks_on_host = max(Counter(hosts).values())
    link = measure_link(group, ranks_on_host, parameters)
    slowest = Computing(*max(group.gather(own)))
    workload = Workload(parameters, group.ranks, ranks_on_host, len({*hosts}), *slowest)
    # All on rank 0, since clocks and rounding might differ.
    link, workload = Link(*group.broadcast(link)), Workload(*group.broadcast(workload))
    allowed = ladder_for(config)
    if config.sync.group == "host" and workload.hosts == 1:  # whose workers never part
        allowed = [settings for settings in allowed if not settings.is_local]
    ladder = [with_buckets(settings, link) for settings in allowed]
    forecasts, chosen = choose(workload, link, ladder)
    return Choice(link, workload, forecasts, chosen)


def with_buckets(settings: SyncSettings, link: Link | None) -> SyncSettings:
    """Returns settings whose gradients travel in buckets that suit the link; None: in torch's."""
    if settings.is_local:
        return settings
    return settings.model_copy(update={"bucket_mb": bucket_mb_for(link) if link else None})


def worth_a_change(choice: Choice, current: SyncSettings) -> bool:
    """Returns whether to change to what was chosen; a milder mode has to be clearly enough."""
    # Other buckets alone are not worth it.
    ladder = [with_buckets(each.settings, None) for each in choice.forecasts]
    chosen, before = (with_buckets(each, None) for each in (choice.chosen.settings, current))
    if chosen == before:
        return False
    is_milder = before not in ladder or ladder.index(chosen) < ladder.index(before)
    if is_milder:
        return choice.chosen.exposed_s < MILDER_SHARE * choice.workload.compute_s
    now = forecast(current, choice.workload, choice.link)
    return choice.chosen.exposed_s < now.exposed_s


class NetworkWatch:
    """Knows on each rank how long steps compute, and on rank 0 whether to look again."""

    def __init__(
        self,
        settings: SyncSettings,
        elapsed_s: float,
        fruitless_looks: int = 0,
        known_waits: float = 0.0,
    ) -> None:
        """After each look that changes nothing, the next one waits twice as long, unless steps wait
        clearly longer than then (`known_waits`, as a share of computing)."""
        self._known_waits = known_waits
        self._is_mildest = settings.mode == "fp32"
        self._looked_s, self.fruitless_looks = elapsed_s, fruitless_looks
        self._patience = 2 ** min(fruitless_looks, MOST_PATIENCE)
        self._steps = 0
        self._computed: deque[Computing] = deque(maxlen=WATCHED_STEPS)
        self._exposed_s: deque[float] = deque(maxlen=WATCHED_STEPS)

    def after_step(self, done: StepDone, micro_batches: int) -> None:
        parts = done.parts_s
        computed_s = parts.get("forward", 0.0) + parts.get("backward", 0.0)
        backward_s = parts.get("backward", 0.0) / max(1, micro_batches)
        self._computed.append(Computing(computed_s, backward_s))
        self._exposed_s.append(parts.get("communication", 0.0))
        self._steps += 1

    def computing(self) -> Computing:
        return Computing(
            statistics.median(each.compute_s for each in self._computed),
            statistics.median(each.backward_s for each in self._computed),
        )

    def waits(self) -> float:
        """Returns how long steps wait for the network, as a share of computing."""
        return statistics.fmean(self._exposed_s) / max(self.computing().compute_s, 1e-9)

    def looks_again(self, elapsed_s: float) -> bool:
        if self._steps < WATCHED_STEPS:
            return False
        waits = self.waits()
        is_patient = self._steps >= WATCHED_STEPS * self._patience
        is_worse = waits > CLEARLY_WORSE * self._known_waits
        if waits > WORTH_LOOKING * LARGEST_SHARE and (is_patient or is_worse):
            return True
        if not is_patient:
            return False
        waited_s = elapsed_s - self._looked_s
        return not self._is_mildest and waited_s >= self._patience * LOOK_AGAIN_S
