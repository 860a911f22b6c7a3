from unit.diagnosis.speed_run import new_run, read
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import started, step

from dragoman.diagnosis.answers import faults
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved


def interrupted_run(tmp_path):
    run = new_run(tmp_path)
    steps = [*range(1, 31), *range(21, 41)]  # goes back by itself to step 20
    events = [(float(at), step(n)) for at, n in enumerate(steps, start=1)]
    saved = [(20.5, CheckpointSaved(20, "a", 1, 0.1)), (45.5, CheckpointSaved(35, "b", 1, 0.1))]
    run.with_events(sorted([(0.0, started(ranks=2)), *events, *saved], key=lambda event: event[0]))
    run.with_events([(0.0, started(rank=1, ranks=2)), *events], rank=1)
    run.with_events(
        [
            (0.0, started(attempt=2, first_step=36)),
            *((float(n - 35), step(n)) for n in range(36, 61)),
            (30.0, AttemptEnded(60, "preempted", "asked to stop (SIGTERM)")),
        ],
        attempt=2,
    )
    return run


def test_what_faults_cost_is_told(tmp_path):
    facts = read(interrupted_run(tmp_path))
    found = faults.answer(facts)

    assert found.verdict == "3 faults"
    assert figure(found, "lost steps") == 10 + 5 + 25  # the last attempt has saved nothing


def test_a_run_of_several_attempts_without_faults_says_so(tmp_path):
    run = new_run(tmp_path)
    ended = AttemptEnded(1, "finished", "done")
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, ended)])
    run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, step(2)), (2.0, ended)], attempt=2
    )

    assert faults.answer(read(run)).verdict == "none"
