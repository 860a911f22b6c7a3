"""The run as a timeline for Perfetto or chrome://tracing, in the JSON format that both read.

A process stands for a host and a thread for a rank. Slices: steps with their parts, evaluations,
checkpoints, attempts. Instants: incidents. Counters: readings of the host's sensors. All times are
on rank 0's clock. An event is stamped at the end of what it records, so a slice begins that many
seconds before.
"""

import datetime
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from dragoman.errors import UserError
from dragoman.report.host_curves import rates
from dragoman.rundir import RunDir, write_whole
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Evaluated,
    Event,
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
_OVERLAPPING = 100_000
"""Added to the number of a rank's thread for what may overlap its steps."""
_MEGA, _GIGA = 1e6, 1e9
_Event: TypeAlias = dict[str, Any]

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


def write_trace(
    run: RunDir, steps: tuple[int, int] | None = None, written_to: RunDir | None = None
) -> Trace:
    """Writes trace.json with the given steps, or with as many of the newest as a browser takes.

    It is written to the run's own folder, or to that of `written_to`."""
    tables = read_tables(run)
    if not any(len(table) for table in tables.by_kind.values()):
        raise UserError(f"{run.root}: holds no events, so there is nothing to show on a timeline")
    chosen = _chosen_steps(tables[StepDone], steps)
    events = _Events(tables, chosen)
    started = datetime.datetime.fromtimestamp(events.begin, datetime.UTC)
    head = msgspec.json.encode({"run": str(run.root), "time_0": started.isoformat()})
    # Encoded one by one: all events as objects would need several times the memory of the file.
    lines = b",\n".join(map(msgspec.json.Encoder().encode, events.all()))
    path = (written_to or run).root / "trace.json"
    content = b'{"displayTimeUnit":"ms","otherData":%b,"traceEvents":[\n%b\n]}\n' % (head, lines)
    write_whole(path, content)
    numbers = chosen["step"] if len(chosen) else np.zeros(1, dtype=np.int64)
    is_whole = len(chosen) == len(tables[StepDone])
    return Trace(path, int(numbers.min()), int(numbers.max()), is_whole)


def _chosen_steps(done: Table, steps: tuple[int, int] | None) -> Table:
    if steps:
        done = done.where((done["step"] >= steps[0]) & (done["step"] <= steps[1]))
    most = MOST_SLICES // (1 + len(done.groups["parts_s"]))
    if len(done) > most:
        done = done.where(np.sort(np.argsort(done["at"], kind="stable")[-most:]))
    return done


class _Events:
    """Events of the file; times become microseconds since the first event that is shown."""

    def __init__(self, tables: RunTables, steps: Table) -> None:
        self._tables, self._steps = tables, steps
        self._filled = [table for table in tables.by_kind.values() if len(table)]
        self.begin = float(min(table["at"].min() for table in self._filled))
        self._end = float(max(table["at"].max() for table in self._filled))
        if 0 < len(steps) < len(tables[StepDone]):
            self.begin = float(np.min(steps["at"] - steps["step_s"]))
            self._end = float(np.max(steps["at"]))
        starts = tables[AttemptStarted]
        known = zip(starts["attempt"], starts["rank"], starts["host"], strict=True)
        hosts = {(int(attempt), int(rank)): str(host) for attempt, rank, host in known}
        named = dict(sorted(hosts.items()))
        for table in self._filled:
            for attempt, rank, _ in table.by_rank():
                named.setdefault((attempt, rank), "host not known")
        names = dict.fromkeys(named.values())
        self._processes = {host: _FIRST_HOST + number for number, host in enumerate(names)}
        self._tracks = {
            (attempt, rank): Track(self._processes[host], rank + 1)
            for (attempt, rank), host in named.items()
        }

    def all(self) -> Iterator[_Event]:
        yield from self._names()
        yield from self._attempts()
        for attempt, rank, steps in self._steps.by_rank():
            yield from self._step_slices(self._tracks[attempt, rank], steps)
        for kind, name in ((Evaluated, "evaluation"), (CheckpointSaved, "checkpoint")):
            yield from self._overlapping_slices(self._shown(self._tables[kind]), name)
        yield from self._instants(Incident, "message", "{}")
        yield from self._instants(AttemptEnded, "state", "{}")
        yield from self._instants(EventsDropped, "count", "{} events dropped")
        for attempt, rank, readings in self._tables[SensorReading].by_rank():
            yield from self._counters(self._tracks[attempt, rank].process, self._shown(readings))

    def _shown(self, table: Table) -> Table:
        return table.where((table["at"] >= self.begin) & (table["at"] <= self._end))

    def _names(self) -> Iterator[_Event]:
        yield _named("process", Track(_RUN, 0), "run")
        for host, process in self._processes.items():
            yield _named("process", Track(process, 0), host)
        for track in sorted(set(self._tracks.values())):
            yield _named("thread", track, f"rank {track.thread - 1}")

    def _attempts(self) -> Iterator[_Event]:
        ended = self._tables[AttemptEnded]
        for attempt in sorted({attempt for attempt, _ in self._tracks}):
            at = np.concatenate([t["at"][t["attempt"] == attempt] for t in self._filled])
            begin, end = max(self.begin, at.min()), min(self._end, at.max())
            last = ended.where(ended["attempt"] == attempt)
            how = {"state": last["state"][0], "why": last["reason"][0]} if len(last) else {}
            if begin <= end:
                span = self._microseconds(begin), self._microseconds(end)
                yield _slice(Track(_RUN, 1), f"attempt {attempt}", *span, args=how)

    def _step_slices(self, track: Track, steps: Table) -> Iterator[_Event]:
        ends = steps["at"]
        begins = ends - steps["step_s"]
        # Neighbors touch; where the offset of a clock was estimated again they could overlap.
        begins[1:] = np.maximum(begins[1:], ends[:-1])
        ends = np.maximum(begins, ends)
        names = list(steps.groups["parts_s"])
        parts = np.nan_to_num([*steps.groups["parts_s"].values()]).reshape(len(names), len(steps))
        bounds = np.minimum(begins + np.cumsum(parts, axis=0), ends)
        columns = [steps[name].tolist() for name in ("step", "loss", "tokens")]
        columns += map(self._microseconds, (begins, ends, bounds.T))
        for number, loss, tokens, begin, end, part_ends in zip(*columns, strict=True):
            args = {"loss": loss, "tokens": tokens}
            yield _slice(track, f"step {number}", begin, end, args=args)
            part_begin = begin
            for name, part_end in zip(names, part_ends, strict=True):
                if part_end > part_begin:
                    yield _slice(track, name, part_begin, part_end)
                    part_begin = part_end

    def _overlapping_slices(self, table: Table, name: str) -> Iterator[_Event]:
        for row in range(len(table)):
            process, thread = self._track(table, row)
            track = Track(process, thread + _OVERLAPPING)
            if not row:
                yield _named("thread", track, f"rank {thread - 1}: evaluations, checkpoints")
            end = table["at"][row]
            span = self._microseconds(end - table["seconds"][row]), self._microseconds(end)
            yield _slice(track, name, *span, args={"step": int(table["step"][row])})

    def _instants(self, kind: type[Event], column: str, text: str) -> Iterator[_Event]:
        table = self._shown(self._tables[kind])
        for row in range(len(table)):
            ts = self._microseconds(table["at"][row])
            name = text.format(table[column][row])
            yield _event("i", self._track(table, row), name, s="t", ts=ts)

    def _counters(self, process: int, readings: Table) -> Iterator[_Event]:
        thinned = readings.where(np.arange(0, len(readings), 1 + len(readings) // MOST_READINGS))
        values, at = thinned.groups["values"], thinned["at"]
        for track, lines in _COUNTERS.items():
            for device in _devices(lines, values):
                shown = {
                    name: (rates(read, at) if path.endswith(COUNTER) else read) / unit
                    for name, (path, unit) in lines.items()
                    if (read := values.get(path.format(device))) is not None
                }
                for row, ts in enumerate(self._microseconds(at)):
                    args = {n: round(float(v[row]), 3) for n, v in shown.items()}
                    args = {n: value for n, value in args.items() if math.isfinite(value)}
                    if args:
                        name = track.format(device)
                        yield {"ph": "C", "pid": process, "ts": ts, "name": name, "args": args}

    def _track(self, table: Table, row: int) -> Track:
        return self._tracks[int(table["attempt"][row]), int(table["rank"][row])]

    def _microseconds(self, at: Any) -> Any:
        """Rounds before durations are taken, so that parts never reach out of their step."""
        return np.round((at - self.begin) * 1e6, 1).tolist()


def _event(phase: str, track: Track, name: str, **fields: Any) -> _Event:
    return {"ph": phase, "pid": track.process, "tid": track.thread, **fields, "name": name}


def _slice(track: Track, name: str, begin_us: float, end_us: float, **fields: Any) -> _Event:
    process, thread = track
    dur = round(max(0.0, end_us - begin_us), 1)
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin_us,
        "dur": dur,
        "name": name,
        **fields,
    }


def _named(what: str, track: Track, name: str) -> _Event:
    return _event("M", track, f"{what}_name", args={"name": name})


def _devices(lines: dict[str, tuple[str, float]], values: dict[str, Array]) -> list[str]:
    """Returns what {} stands for; for a track without a device, "" where it has values."""
    patterns = [path.replace("{}", "(?P<device>.+)") for path, _ in lines.values()]
    found = (re.fullmatch(pattern, name) for pattern in patterns for name in values)
    return list(dict.fromkeys(match.groupdict().get("device", "") for match in found if match))
