"""Events of small runs, and the files that hold them."""

from dragoman.telemetry.events import AttemptStarted, Stamped, StepDone, to_line

PARTS = {"data": 0.001, "exposed communication": 0.25, "rest": 5e-05}


def step(number, loss=3.25, norm=0.7, updated=True, parts=PARTS):
    return StepDone(number, 0.5, loss, 100, 1e-3, norm, updated, 0.5, dict(parts))


def write(run, attempt, rank, events, begin=0.0, wall_ahead=1e9):
    path = run.events_of(attempt, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    stamps = (Stamped(wall_ahead + begin + n, begin + n, event) for n, event in enumerate(events))
    path.write_text("".join(map(to_line, stamps)), encoding="utf-8")
    return path


def started(attempt, rank):
    return AttemptStarted(attempt, rank, 2, f"host-{rank}", "cpu", 1)
