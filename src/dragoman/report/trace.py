"""The run as a timeline for Perfetto or chrome://tracing, in the JSON format that both read.

A process stands for a host and a thread for a rank. Slices: steps with their parts, evaluations,
checkpoints, attempts. Instants: troubles. Counters: what the host's sensors said. Everything lies
on rank 0's clock. An event is stamped at the end of what it tells of, so a slice begins that many
seconds before.
"""

import datetime
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.errors import UserError
from dragoman.rundir import RunDir, write_whole
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Evaluated,
    EventsDropped,
    Incident,
    SensorReading,
    StepDone,
)
from dragoman.telemetry.export.metrics import COUNTER
from dragoman.telemetry.read.reader import read_tables
from dragoman.telemetry.read.tables import Array, RunTables, Table

MOST_SLICES = 500_000
"""About 50 MB, which a browser still opens in seconds."""
MOST_READINGS = 20_000

_RUN = 1
_FIRST_HOST = 2
_ASIDE = 100_000
"""Added to the number of a rank's thread for what may overlap its steps."""
_MEGA, _GIGA = 1e6, 1e9

# Track -> {name in it: (value, or counter to show the rate of, divisor)}; {} is a device's name.
_COUNTERS: dict[str, dict[str, tuple[str, float]]] = {
    "CPU, %": {"busy": ("cpu/percent", 1), "stolen": ("cpu/steal_percent", 1)},
    "memory, GB": {"used": ("memory/used_bytes", _GIGA)},
    "disk, MB/s": {
        "read": ("disk/read_bytes_total", _MEGA),
        "written": ("disk/written_bytes_total", _MEGA),
    },
    "network {}, MB/s": {
        "sent": ("network/{}/sent_bytes_total", _MEGA),
        "received": ("network/{}/received_bytes_total", _MEGA),
    },
    "TCP retransmissions, 1/s": {"segments": ("tcp/retransmitted_segments_total", 1)},
    "GPU {}, %": {"busy": ("gpu/{}/utilization_percent", 1)},
    "GPU {}, GB": {"used": ("gpu/{}/memory_used_bytes", _GIGA)},
    "GPU {}, W": {"power": ("gpu/{}/power_w", 1)},
}


class Track(NamedTuple):
    process: int
    thread: int


class Trace(NamedTuple):
    path: Path
    first_step: int
    last_step: int
    is_whole: bool
    """All steps of the run are in it."""


def write_trace(run: RunDir, steps: tuple[int, int] | None = None) -> Trace:
    """trace.json, of the steps that are named, or of as many of the newest as a browser takes."""
    tables = read_tables(run)
    if not any(len(table) for table in tables.by_kind.values()):
        raise UserError(f"{run.root}: holds no events, so there is nothing to show on a timeline")
    taken = _chosen_steps(tables[StepDone], steps)
    events = _Events(tables, taken)
    started = datetime.datetime.fromtimestamp(events.begin, datetime.UTC)
    head = json.dumps({"run": str(run.root), "time_0": started.isoformat()})
    lines = ",\n".join(events.lines())
    path = run.root / "trace.json"
    write_whole(
        path,
        f'{{"displayTimeUnit":"ms","otherData":{head},"traceEvents":[\n{lines}\n]}}\n',
    )
    numbers = taken["step"] if len(taken) else np.zeros(1, dtype=np.int64)
    return Trace(path, int(numbers.min()), int(numbers.max()), len(taken) == len(tables[StepDone]))


def _chosen_steps(done: Table, steps: tuple[int, int] | None) -> Table:
    if steps:
        done = done.where((done["step"] >= steps[0]) & (done["step"] <= steps[1]))
    most = MOST_SLICES // (1 + len(done.groups["parts_s"]))
    if len(done) > most:
        newest = np.sort(np.argsort(done["at"], kind="stable")[-most:])
        done = done.where(newest)
    return done


class _Events:
    """Lines of the file; times become microseconds since the first event that is shown."""

    def __init__(self, tables: RunTables, steps: Table) -> None:
        self._tables, self._steps = tables, steps
        starts = tables[AttemptStarted]
        self._hosts = {
            (int(attempt), int(rank)): str(host)
            for attempt, rank, host in zip(
                starts["attempt"], starts["rank"], starts["host"], strict=True
            )
        }
        names = dict.fromkeys(self._hosts[place] for place in sorted(self._hosts))
        self._processes = {host: _FIRST_HOST + number for number, host in enumerate(names)}
        every = [table["at"] for table in tables.by_kind.values() if len(table)]
        self.begin, self._end = min(map(np.min, every)), max(map(np.max, every))
        if len(steps) < len(tables[StepDone]) and len(steps):
            self.begin = float(np.min(steps["at"] - steps["step_s"]))
            self._end = float(np.max(steps["at"]))

    def lines(self) -> Iterator[str]:
        yield from self._names()
        yield from self._attempts()
        for attempt, rank, steps in self._steps.by_rank():
            yield from self._of_steps(self._track(attempt, rank), steps)
        for kind, name in ((Evaluated, "evaluation"), (CheckpointSaved, "checkpoint")):
            yield from self._beside_the_steps(self._shown(self._tables[kind]), name)
        yield from self._instants()
        for attempt, rank, readings in self._tables[SensorReading].by_rank():
            yield from self._counters(self._track(attempt, rank).process, readings)

    def _track(self, attempt: int, rank: int) -> Track:
        host = self._hosts.get((attempt, rank), "host not known")
        process = self._processes.setdefault(host, _FIRST_HOST + len(self._processes))
        return Track(process, rank + 1)

    def _shown(self, table: Table) -> Table:
        return table.where((table["at"] >= self.begin) & (table["at"] <= self._end))

    def _names(self) -> Iterator[str]:
        yield _named("process", Track(_RUN, 0), "run")
        for table in self._tables.by_kind.values():
            for attempt, rank, _ in table.by_rank():
                self._track(attempt, rank)
                self._hosts.setdefault((attempt, rank), "host not known")
        for host, process in self._processes.items():
            yield _named("process", Track(process, 0), host)
        for track, rank in sorted({(self._track(*place), place[1]) for place in self._hosts}):
            yield _named("thread", track, f"rank {rank}")

    def _attempts(self) -> Iterator[str]:
        everything = [table for table in self._tables.by_kind.values() if len(table)]
        ended = self._tables[AttemptEnded]
        for attempt in sorted({attempt for attempt, _ in self._hosts}):
            at = np.concatenate([t["at"][t["attempt"] == attempt] for t in everything])
            begin, end = max(self.begin, at.min()), min(self._end, at.max())
            last = ended.where(ended["attempt"] == attempt)
            how = (
                {"state": str(last["state"][0]), "why": str(last["reason"][0])} if len(last) else {}
            )
            if begin <= end:
                yield self._slice(Track(_RUN, 1), f"attempt {attempt}", begin, end, how)

    def _of_steps(self, track: Track, steps: Table) -> Iterator[str]:
        ends = steps["at"]
        begins = ends - steps["step_s"]
        # Neighbors touch; where a clock was estimated anew they might overlap by a hair.
        begins[1:] = np.maximum(begins[1:], ends[:-1])
        ends = np.maximum(begins, ends)
        names = [json.dumps(name) for name in steps.groups["parts_s"]]
        parts = np.nan_to_num(np.array(list(steps.groups["parts_s"].values())))
        bounds = begins + np.cumsum(parts, axis=0) if names else np.empty((0, len(steps)))
        bounds = np.minimum(bounds, ends)
        begins_us, ends_us, bounds_us = map(self._microseconds, (begins, ends, bounds))
        place = f'"pid":{track.process},"tid":{track.thread}'
        for row, (number, loss, tokens) in enumerate(
            zip(steps["step"], steps["loss"], steps["tokens"], strict=True)
        ):
            begin, end = begins_us[row], ends_us[row]
            shown_loss = float(loss) if math.isfinite(loss) else "null"
            yield (
                f'{{"ph":"X",{place},"ts":{begin:.1f},"dur":{end - begin:.1f},'
                f'"name":"step {number}","args":{{"loss":{shown_loss},"tokens":{tokens}}}}}'
            )
            for name, bound in zip(names, bounds_us[:, row], strict=True):
                if bound > begin:
                    yield (
                        f'{{"ph":"X",{place},"ts":{begin:.1f},"dur":{bound - begin:.1f},'
                        f'"name":{name}}}'
                    )
                    begin = bound

    def _beside_the_steps(self, table: Table, name: str) -> Iterator[str]:
        for row in range(len(table)):
            track = self._track(int(table["attempt"][row]), int(table["rank"][row]))
            aside = Track(track.process, track.thread + _ASIDE)
            if not row:
                title = f"rank {track.thread - 1}: evaluations, checkpoints"
                yield _named("thread", aside, title)
            end = float(table["at"][row])
            of_step = {"step": int(table["step"][row])}
            yield self._slice(aside, name, end - float(table["seconds"][row]), end, of_step)

    def _instants(self) -> Iterator[str]:
        told = (
            (self._shown(self._tables[Incident]), "message", "{}"),
            (self._shown(self._tables[AttemptEnded]), "state", "{}"),
            (self._shown(self._tables[EventsDropped]), "count", "{} events dropped"),
        )
        for table, column, text in told:
            for row in range(len(table)):
                track = self._track(int(table["attempt"][row]), int(table["rank"][row]))
                yield json.dumps(
                    {
                        "ph": "i",
                        "s": "t",
                        "pid": track.process,
                        "tid": track.thread,
                        "ts": float(self._microseconds(table["at"][row])),
                        "name": text.format(table[column][row]),
                    }
                )

    def _counters(self, process: int, readings: Table) -> Iterator[str]:
        readings = self._shown(readings)
        thinned = readings.where(np.arange(0, len(readings), 1 + len(readings) // MOST_READINGS))
        values = thinned.groups["values"]
        at_us = self._microseconds(thinned["at"])
        for track, lines in _COUNTERS.items():
            for device in _devices(lines, values):
                shown = {
                    name: _states_or_rates(values[path.format(device)], thinned["at"], path) / unit
                    for name, (path, unit) in lines.items()
                    if path.format(device) in values
                }
                for row, ts in enumerate(at_us):
                    args = {n: round(float(v[row]), 3) for n, v in shown.items()}
                    args = {n: value for n, value in args.items() if math.isfinite(value)}
                    if args:
                        yield (
                            f'{{"ph":"C","pid":{process},"ts":{ts:.1f},'
                            f'"name":{json.dumps(track.format(device))},"args":{json.dumps(args)}}}'
                        )

    def _slice(
        self, track: Track, name: str, begin: float, end: float, args: dict[str, Any]
    ) -> str:
        begin_us, end_us = self._microseconds(begin), self._microseconds(end)
        return json.dumps(
            {
                "ph": "X",
                "pid": track.process,
                "tid": track.thread,
                "ts": float(begin_us),
                "dur": round(max(0.0, float(end_us - begin_us)), 1),
                "name": name,
                "args": args,
            }
        )

    def _microseconds(self, at: Any) -> Any:
        """Rounded before durations are taken, so that parts never reach out of their step."""
        return np.round((at - self.begin) * 1e6, 1)


def _named(what: str, track: Track, name: str) -> str:
    place = {"pid": track.process, "tid": track.thread}
    return json.dumps({"ph": "M", **place, "name": f"{what}_name", "args": {"name": name}})


def _devices(lines: dict[str, tuple[str, float]], values: dict[str, Array]) -> list[str]:
    """What {} stands for; of a track without a device, one empty name where it has values."""
    found: dict[str, None] = {}
    for path, _ in lines.values():
        before, _, after = path.partition("{}")
        for name in values:
            if "{}" in path and name.startswith(before) and name.endswith(after):
                found[name[len(before) : len(name) - len(after)]] = None
            elif name == path:
                found[""] = None
    return list(found)


def _states_or_rates(values: Array, at: Array, path: str) -> Array:
    if not path.endswith(COUNTER):
        return values
    rates = np.full(len(values), np.nan)
    rates[1:] = np.diff(values) / np.maximum(np.diff(at), 1e-9)
    rates[rates < 0] = np.nan  # it began anew
    return rates
