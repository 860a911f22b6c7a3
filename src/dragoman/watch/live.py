"""A run at this moment: its events come in as they are written, `Now` goes out.

Everything that is held is bounded: sums over two seconds each for the curves of the last minutes,
the last steps of each rank (live_rank.py), the last readings of each host (live_sensors.py).
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.config import Config, CostSettings
from dragoman.diagnosis.estimate import Estimate
from dragoman.diagnosis.run.attempts import End, outcome_of
from dragoman.diagnosis.run.record import Member, with_prices
from dragoman.report.content import HostCurve, Report, StateName
from dragoman.report.state import in_words
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Evaluated,
    ForecastMade,
    Incident,
    SensorReading,
    Stamped,
)
from dragoman.telemetry.record.status import Status
from dragoman.watch import happenings
from dragoman.watch.content import Happening, Now, RecentSteps
from dragoman.watch.live_rank import (
    WINDOW_S,
    LiveRank,
    StepBin,
    is_possible,
    rank_now,
    recent_steps,
)
from dragoman.watch.live_sensors import LiveSensors, Reading
from dragoman.watch.time_left import Pace, at_most, evaluations_left, last_step, time_left

MOST_HAPPENINGS = 48
SILENT_S = 10.0
"""A rank that does nothing for this long, and for so many of its steps, while others go on, is
named."""
SILENT_STEPS = 5.0
SILENT_READINGS = 3.0
"""The same for readings of sensors: `telemetry.sensors_every_s` may be minutes."""
ALIVE_S = 4.0
PREPARING_S = 600.0
"""So long the word of a command that prepares another attempt is believed."""


@dataclass(frozen=True)
class Surroundings:
    """What is known of a run beside its events."""

    run: RunDir
    config: Config | None = None
    members: Mapping[int, Sequence[Member]] = field(default_factory=dict)
    """By attempt."""
    status: Status = field(default_factory=Status)
    report: Report | None = None
    trouble: str = ""


class LiveRun:
    """What the events of a run say so far. `add` what `EventTail` finds, then ask for `now`."""

    def __init__(self) -> None:
        self.attempt = 0
        self.seen_attempts: set[int] = set()
        self._ranks: dict[int, LiveRank] = {}
        self._bins_before: list[StepBin] = []
        self._sensors = LiveSensors()
        self._happened: dict[object, Happening] = {}
        self._skipped = 0
        self._ends: dict[int, list[End]] = {}
        self._evaluated: Evaluated | None = None
        self._evaluation_s: deque[float] = deque(maxlen=10)
        self._forecast: ForecastMade | None = None
        self._heartbeat_at: float | None = None
        self._heartbeat_seen_at = 0.0
        """On the watcher's clock, except for one that is older than the watching."""
        self._drawn: tuple[RecentSteps, list[HostCurve]] | None = None
        """The curves, until there are more events."""

    def add(
        self, attempt: int, rank: int, events: Sequence[Stamped], is_anew: bool, now: float
    ) -> None:
        """`is_anew`: the file is read for the first time, or another has taken its place; then its
        events may be old, and say nothing about whether anyone is alive now."""
        possible = [stamped for stamped in events if is_possible(stamped)]
        if attempt < self.attempt and attempt not in self.seen_attempts:
            return
        if attempt > self.attempt:
            self._begin(attempt)
        if attempt == self.attempt and (is_anew or rank not in self._ranks):
            self._ranks.pop(rank, None)
            self._sensors.forget(attempt, rank)
        if not possible:
            return
        self._drawn = None
        first = possible[0]
        state = LiveRank(first.wall_at - first.monotonic_at)
        if attempt == self.attempt:
            state = self._ranks.setdefault(rank, state)
            state.read_at = now
            if not is_anew:
                state.seen_at = now
        for stamped in possible:
            state.note_clock(stamped)
        zero = self._ranks.get(0)
        places = state.place(rank, possible, zero.wall_ahead_s if zero else None)
        for stamped, at in zip(possible, places, strict=True):
            self._note(attempt, rank, state, stamped, at)

    def notice_silence(self, now: float) -> None:
        """Notes ranks that have fallen silent while others go on, or that are back."""
        if self._ends.get(self.attempt):
            return
        for rank, state in self._ranks.items():
            others = [other for number, other in self._ranks.items() if number != rank]
            silent_s = state.silent_s(now)
            step_s = state.step_s if state.steps else 0.0
            limit_s = max(SILENT_S, SILENT_STEPS * step_s)
            every_s = self._sensors.every_s(self.attempt, rank)
            if every_s is not None:
                # It reads sensors, whatever else goes on: then its process is gone or cut off.
                limit_s = max(limit_s, SILENT_READINGS * every_s)
                others_go_on = any(other.silent_s(now) < ALIVE_S for other in others)
            else:
                ahead_s = max((o.stepped_at - state.stepped_at for o in others), default=0.0)
                others_go_on = bool(state.steps) and ahead_s > limit_s
            is_silent = silent_s > limit_s and others_go_on
            if is_silent and not state.is_silent:
                state.is_silent = True
                key = "silent", self.attempt, rank, state.last_at
                self._happened[key] = happenings.silent(state.last_at, rank, self._host(rank))
            elif state.is_silent and silent_s < ALIVE_S:
                state.is_silent = False
                key = "back", self.attempt, rank, state.last_at
                self._happened[key] = happenings.back(state.last_at, rank, self._host(rank))

    def signs(self) -> tuple[object, ...]:
        """Returns what changes when something has happened that may change an answer."""
        grave = sum(happening.health == "poor" for happening in self._happened.values())
        return self.attempt, self._evaluated and self._evaluated.step, grave

    def now(self, at: float, about: Surroundings) -> Now:
        config, report, status = about.config, about.report, about.status
        leading = self._ranks[min(self._ranks)] if self._ranks else None
        last = leading.steps[-1] if leading and leading.steps else None
        first_step = leading.start.first_step if leading and leading.start else 1
        step = last.step if last else (first_step - 1 if leading else status.step)
        planned = last_step(config.training, last) if config else None
        name, reason = self._state(at, status)
        members = list(about.members.get(self.attempt, []))
        recent, hosts = self._drawn = self._drawn or (
            recent_steps(self._bins(leading)),
            self._sensors.curves(self._hosts()),
        )
        left = None
        if name == "training" and config and leading:
            left = self._left(config, leading, step, planned, report)
        has_interval = left is not None and left.high > left.low
        bleu, bleu_step = self._bleu(status, report)
        cost = _cost(config, self._forecast, report)
        timed_s = math.fsum(s.step_s for s in leading.steps) if leading else 0.0
        return Now(
            name=config.name if config else about.run.root.resolve().name,
            run=str(about.run.root),
            at=at,
            state=name,
            sentence=self._sentence(at, name, reason, step, planned, left and left.value, about),
            trouble=about.trouble,
            attempt=self.attempt,
            ranks_expected=max(
                [
                    *(r.start.ranks for r in self._ranks.values() if r.start),
                    *(len(members), len(self._ranks)),
                ]
            ),
            step=step,
            planned_steps=planned,
            epoch=last.epoch if last else None,
            loss=last.loss if last else status.loss,
            learning_rate=last.learning_rate if last else None,
            tokens_per_s=(
                sum(s.tokens for s in leading.steps) / timed_s if leading and timed_s else None
            ),
            bleu=bleu,
            bleu_step=bleu_step,
            left_s=left.value if left else None,
            left_low_s=left.low if left and has_interval else None,
            left_high_s=left.high if left and has_interval else None,
            spent=self._spent(report, cost.host_per_hour),
            currency=cost.currency,
            ranks=[
                rank_now(rank, state, self._host(rank, members), at)
                for rank, state in sorted(self._ranks.items())
            ],
            recent=recent,
            hosts=hosts,
            happenings=self._timeline(report),
        )

    def _begin(self, attempt: int) -> None:
        if self._ranks:
            self._bins_before = self._bins(self._ranks[min(self._ranks)])
        self.attempt, self._ranks = attempt, {}
        self.seen_attempts.add(attempt)
        self._sensors.keep(sorted(self.seen_attempts)[-2:])

    def _note(self, attempt: int, rank: int, state: LiveRank, stamped: Stamped, at: float) -> None:
        event = stamped.event
        state.note(stamped, at)
        match event:
            case SensorReading(values=values):
                host = state.start.host if state.start else ""
                reading = Reading(at, stamped.monotonic_at, values)
                self._sensors.add(attempt, rank, host, reading)
            case AttemptStarted():
                starts = [r.start for _, r in sorted(self._ranks.items()) if r.start]
                hosts = list(dict.fromkeys(s.host for s in starts if s.host))
                before = self._happened.get(("started", attempt))
                self._happened["started", attempt] = happenings.started(
                    min(at, before.at) if before else at,
                    *(attempt, event.first_step, event.ranks, hosts),
                )
            case Evaluated():
                key = "evaluated", attempt, event.step
                if key not in self._happened or event.bleu is not None:
                    self._evaluation_s.append(event.seconds)
                    self._happened[key] = happenings.evaluated(at, event)
                if event.bleu is not None:
                    self._evaluated = event
            case CheckpointSaved():
                self._happened["saved"] = happenings.saved(at, event)
            case Incident(category="update-skipped"):
                if rank == min(self._ranks, default=rank):  # the others record the same
                    self._skipped += 1
                self._happened["skipped"] = happenings.incident(at, event, self._skipped)
            case Incident():
                self._happened.setdefault((attempt, event), happenings.incident(at, event))
            case ForecastMade():
                self._forecast = event
            case AttemptEnded():
                self._note_end(attempt, rank, state, event, at)

    def _note_end(
        self, attempt: int, rank: int, state: LiveRank, event: AttemptEnded, at: float
    ) -> None:
        state.end = event
        ends = [end for end in self._ends.get(attempt, []) if end.rank != rank]
        ends = sorted([*ends, End(at, rank, event)], key=lambda end: (end.at, end.rank))
        self._ends[attempt] = ends
        name, reason = outcome_of(ends, max(len(self._ranks), len(ends)), 0.0, 0.0)
        self._happened["ended", attempt] = happenings.ended(
            ends[0].at, attempt, event.step, name, reason
        )
        if event.cause == "lost-rank" and event.culprit_rank is not None:
            key = "lost", attempt, event.culprit_rank
            host = event.culprit_host or self._host(event.culprit_rank)
            self._happened.setdefault(key, happenings.lost(at, attempt, event.culprit_rank, host))

    def _state(self, now: float, status: Status) -> tuple[StateName, str]:
        if not self._ranks:
            return "preparing", ""
        ends = self._ends.get(self.attempt, [])
        silent_s = min(state.silent_s(now) for state in self._ranks.values())
        alive_at = self._alive_at(now, status)
        last_at = max(state.last_at for state in self._ranks.values())
        if status.state == "preparing" and alive_at > last_at and now - alive_at < PREPARING_S:
            return "preparing", ""
        longest_gap_s = max(state.longest_gap_s for state in self._ranks.values())
        silent_s = min(silent_s, max(0.0, now - alive_at))
        return outcome_of(ends, len(self._ranks), longest_gap_s, silent_s)

    def _alive_at(self, now: float, status: Status) -> float:
        """Returns when the heartbeat was, on the watcher's clock as far as that can be known."""
        if status.heartbeat_at != self._heartbeat_at:
            is_first = self._heartbeat_at is None
            self._heartbeat_at = status.heartbeat_at
            self._heartbeat_seen_at = now
            if is_first:
                self._heartbeat_seen_at = min(now, status.heartbeat_at or 0.0)
        return self._heartbeat_seen_at

    def _sentence(
        self,
        now: float,
        name: StateName,
        reason: str,
        step: int,
        planned: int | None,
        left_s: float | None,
        about: Surroundings,
    ) -> str:
        report = about.report
        if name == "preparing" and self._ranks:
            return f"It is preparing attempt {self.attempt + 1}, after step {step:,}."
        knows_how_to_go_on = (
            report is not None
            and name in ("preempted", "failed", "broken off", "finished")
            and (report.state.name, len(report.attempts)) == (name, self.attempt)
        )
        if report and knows_how_to_go_on:
            return report.state.sentence
        silent_s = min((state.silent_s(now) for state in self._ranks.values()), default=0.0)
        return in_words(name, reason, step, planned, silent_s, left_s)

    def _host(self, rank: int, members: Sequence[Member] = ()) -> str:
        state = self._ranks.get(rank)
        if state and state.start and state.start.host:
            return state.start.host
        return members[rank].host if rank < len(members) else ""

    def _hosts(self) -> set[str]:
        return {state.start.host for state in self._ranks.values() if state.start}

    def _bins(self, leading: LiveRank | None) -> list[StepBin]:
        own = list(leading.bins) if leading else []
        before = [each for each in self._bins_before if not own or each.at < own[0].at]
        every = before + own
        return [each for each in every if each.at > every[-1].at - WINDOW_S]

    def _bleu(self, status: Status, report: Report | None) -> tuple[float | None, int | None]:
        known = (
            [(e.step, e.bleu) for e in report.evaluations if e.bleu is not None] if report else []
        )
        if self._evaluated:
            return self._evaluated.bleu, self._evaluated.step
        if known:
            return known[-1][1], known[-1][0]
        return status.bleu, None

    def _evaluations_s(self, report: Report | None) -> float:
        """Returns the mean of the last ones; 0 where there was none."""
        seconds = list(self._evaluation_s)
        if not seconds and report:
            seconds = [evaluation.seconds for evaluation in report.evaluations[-10:]]
        return math.fsum(seconds) / len(seconds) if seconds else 0.0

    def _left(
        self,
        config: Config,
        leading: LiveRank,
        step: int,
        planned: int | None,
        report: Report | None,
    ) -> Estimate | None:
        """Returns the time until the first of its limits ends the run; None: that is not known."""
        left = None
        if planned is not None:
            evaluations = evaluations_left(step, planned, config.evaluation.every_steps)
            left = time_left(
                [Pace(each.steps, each.seconds) for each in leading.bins],
                max(0, planned - step),
                evaluations * self._evaluations_s(report),
            )
        times_s = self._attempt_times_s(report)
        if config.training.hours is None or times_s is None:
            return left
        done_s = math.fsum(wall_s for wall_s, _ in times_s)
        return at_most(left, max(0.0, 3600 * config.training.hours - done_s))

    def _spent(self, report: Report | None, host_per_hour: float) -> float | None:
        times_s = self._attempt_times_s(report)
        if not host_per_hour or times_s is None:
            return None
        return math.fsum(wall_s * hosts for wall_s, hosts in times_s) / 3600 * host_per_hour

    def _attempt_times_s(self, report: Report | None) -> list[tuple[float, int]] | None:
        """Returns the wall time of each attempt and its hosts; None: those before are not known."""
        if self.attempt > 1 and not report:
            return None
        others = [a for a in report.attempts if a.attempt != self.attempt] if report else []
        times_s = [(a.wall_s, max(1, len(a.hosts))) for a in others]
        if self._ranks:
            leading = self._ranks[min(self._ranks)]
            hosts = self._hosts()
            own_s = max(0.0, leading.last_monotonic_at - leading.first_monotonic_at)
            times_s.append((own_s, max(1, len(hosts))))
        return times_s

    def _timeline(self, report: Report | None) -> list[Happening]:
        before = happenings.earlier(report, self.seen_attempts) if report else ()
        every = sorted([*before, *self._happened.values()], key=lambda each: each.at)
        if len(self._happened) > 4 * MOST_HAPPENINGS:
            newest = sorted(self._happened.items(), key=lambda item: item[1].at)
            self._happened = dict(newest[-2 * MOST_HAPPENINGS :])
        return every[-MOST_HAPPENINGS:]


def _cost(
    config: Config | None, forecast: ForecastMade | None, report: Report | None
) -> CostSettings:
    """Returns the settings with the price of the host list, where there was one."""
    if config is None:
        return CostSettings()
    if forecast or report is None:
        return with_prices(config, forecast).cost
    price = report.settings.get("cost", {}).get("host_per_hour", config.cost.host_per_hour)
    return config.cost.model_copy(update={"host_per_hour": price})
