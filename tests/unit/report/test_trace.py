import json
import math

import pytest
from processes import dragoman
from unit.report.fake_run import FakeRun, evaluated, started, step

from dragoman.errors import UserError
from dragoman.report import trace as trace_module
from dragoman.report.trace import write_trace
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    ClockOffset,
    EventsDropped,
    Incident,
    SensorReading,
    Stamped,
    to_line,
)


def write(run, attempt, rank, stamped):
    path = run.events_of(attempt, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(to_line, stamped)), encoding="utf-8")


def two_ranks(run):
    """Two hosts, four steps of a second each; rank 1's clocks are 100 s ahead."""
    reading = {"cpu/percent": 50.0, "network/eth0/sent_bytes_total": 0, "gpu/0/power_w": 250.0}
    later = reading | {"network/eth0/sent_bytes_total": 4_000_000}
    events = [
        Stamped(1000.0, 10.0, started(rank=0, ranks=2)),
        *(Stamped(1001.0 + n, 11.0 + n, step(n)) for n in (1, 2, 3, 4)),
        Stamped(1005.5, 15.5, SensorReading(reading)),
        Stamped(1007.5, 17.5, SensorReading(later)),
        Stamped(1008.0, 18.0, evaluated(4, seconds=2.0)),
        Stamped(1009.0, 19.0, CheckpointSaved(4, "step-00000004", 1000, 0.5)),
        Stamped(1009.5, 19.5, EventsDropped(3, 3)),
        Stamped(1010.0, 20.0, AttemptEnded(4, "finished", "steps are done")),
    ]
    write(run, 1, 0, events)
    ahead = [
        Stamped(1100.0, 110.0, started(rank=1, ranks=2)),
        Stamped(1100.0, 110.0, ClockOffset("host-1", 100.0, 100.0, 0.001)),
        *(Stamped(1101.0 + n, 111.0 + n, step(n, loss=math.inf)) for n in (1, 2, 3, 4)),
        Stamped(1105.5, 115.5, Incident(4, "other", 'a "hitch"')),
    ]
    write(run, 1, 1, ahead)


@pytest.fixture
def run(tmp_path):
    run = RunDir(tmp_path)
    two_ranks(run)
    return run


def written(run, **more):
    trace = write_trace(run, **more)
    # What a browser's JSON reader refuses, this one takes unless told not to.
    content = json.loads(trace.path.read_text(), parse_constant=pytest.fail)
    return content["traceEvents"]


def of(events, phase, **wanted):
    return [e for e in events if e["ph"] == phase and all(e[k] == v for k, v in wanted.items())]


def test_hosts_are_processes_and_ranks_threads(run):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in of(written(run), "M")}
    assert names[1, 0] == "run"
    assert names[2, 0] == "host-0"
    assert names[2, 1] == "rank 0"
    assert names[3, 0] == "host-1"
    assert names[3, 2] == "rank 1"


def test_a_step_ends_where_it_was_stamped_and_holds_its_parts_in_order(run):
    events = written(run)
    (first,) = of(events, "X", pid=2, name="step 1")
    assert (first["ts"], first["dur"]) == (1e6, 1e6)  # from 1 s to 2 s after the first event
    assert first["args"] == {"loss": 9.0, "tokens": 100}
    parts = [e for e in of(events, "X", pid=2, tid=1) if e["name"] in ("data", "backward")]
    assert [(e["name"], e["ts"], e["dur"]) for e in parts[:2]] == [
        ("data", 1e6, 0.25e6),
        ("backward", 1.25e6, 0.75e6),
    ]


def test_all_ranks_lie_on_the_clock_of_rank_0(run):
    events = written(run)
    for number in (1, 2, 3, 4):
        mine, other = (of(events, "X", pid=p, name=f"step {number}")[0] for p in (2, 3))
        assert other["ts"] == pytest.approx(mine["ts"], abs=1)
    assert of(events, "X", pid=3, name="step 1")[0]["args"]["loss"] is None


def test_evaluations_checkpoints_attempts_troubles_and_counters(run):
    events = written(run)
    (evaluation,) = of(events, "X", name="evaluation")
    assert (evaluation["ts"], evaluation["dur"], evaluation["args"]) == (6e6, 2e6, {"step": 4})
    (checkpoint,) = of(events, "X", name="checkpoint")
    assert (checkpoint["ts"], checkpoint["dur"]) == (8.5e6, 0.5e6)
    assert checkpoint["tid"] == evaluation["tid"] != 1  # they may overlap steps
    (attempt,) = of(events, "X", name="attempt 1")
    assert (attempt["pid"], attempt["ts"], attempt["dur"]) == (1, 0.0, 10e6)
    assert attempt["args"] == {"state": "finished", "why": "steps are done"}
    instants = {(e["pid"], e["tid"], e["name"]) for e in of(events, "i")}
    assert instants == {(3, 2, 'a "hitch"'), (2, 1, "finished"), (2, 1, "3 events dropped")}
    counters = {(e["name"], e["ts"]): e["args"] for e in of(events, "C", pid=2)}
    assert counters["CPU, %", 5.5e6] == {"busy": 50.0}
    assert counters["GPU 0, W", 7.5e6] == {"power": 250.0}
    assert counters["network eth0, MB/s", 7.5e6] == {"sent": 2.0}
    assert ("network eth0, MB/s", 5.5e6) not in counters  # a rate needs two readings


def test_slices_of_a_thread_lie_beside_or_inside_each_other(tmp_path):
    """Neighbors that would overlap by a hair, and parts that add up to a hair more than a step."""
    run = RunDir(tmp_path)
    stamps = [Stamped(1000.0, 10.0, started())]
    for number in range(1, 50):
        parts = {"data": 0.0333333, "forward": 0.0333334, "rest": 0.0333336}
        stamps.append(
            Stamped(1000 + number / 10, 10 + number / 10, step(number, 0.1000007, parts_s=parts))
        )
    write(run, 1, 0, stamps)
    slices = sorted(
        of(written(run), "X", pid=2, tid=1),
        key=lambda e: (e["ts"], -e["dur"], "step" not in e["name"]),
    )
    open_until = []
    for event in slices:
        begin, end = event["ts"], round(event["ts"] + event["dur"], 1)
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert all(end <= outer for outer in open_until), event
        open_until.append(end)


def test_of_a_long_run_the_newest_steps_are_shown_or_those_that_are_named(run, monkeypatch):
    monkeypatch.setattr(trace_module, "MOST_SLICES", 12)  # four steps, with two parts each
    trace = write_trace(run)
    assert (trace.first_step, trace.last_step, trace.is_whole) == (3, 4, False)
    events = written(run)
    assert {e["name"] for e in of(events, "X") if e["name"].startswith("step")} == {
        "step 3",
        "step 4",
    }
    assert min(e["ts"] for e in events if "ts" in e) >= 0
    trace = write_trace(run, steps=(1, 2))
    assert (trace.first_step, trace.last_step) == (1, 2)


def test_a_run_that_was_resumed_has_two_attempts_on_one_timeline(run):
    stamps = [
        Stamped(2000.0, 1010.0, started(attempt=2, ranks=2, first_step=3)),
        Stamped(2001.0, 1011.0, step(3)),
    ]
    write(run, 2, 0, stamps)
    events = written(run)
    first, second = (of(events, "X", name=f"attempt {n}")[0] for n in (1, 2))
    assert second["ts"] == 1000e6 > first["ts"] + first["dur"]
    assert len(of(events, "X", pid=2, name="step 3")) == 2


def test_a_run_without_events_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="holds no events"):
        write_trace(RunDir(tmp_path))


def test_the_command_writes_the_timeline_beside_the_report(tmp_path):
    root = tmp_path / "run"
    FakeRun(root).with_events([(0, started()), (1, step(1)), (2, step(2))])
    done = dragoman("report", root, "--trace")
    assert done.returncode == 0, done.stderr
    assert f"{root}/trace.json (steps 1 to 2; open it at" in done.stdout
    wrong = dragoman("report", root, "--trace-steps", "many")
    assert wrong.returncode == 2
    assert "write it as FIRST-LAST" in wrong.stderr
