import pytest
from unit.diagnosis.speed_run import new_run, read
from unit.diagnosis.step_split import split
from unit.report.fake_run import started, step

from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import Late
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved

ONE = Late("node-b", 0.9, 0.9)
IN_TURN = Late("node-b", 0.4, 0.4)


def test_a_late_host_is_looked_at_and_late_data_where_that_is_the_cause():
    computes_long = split(straggling_s=0.5)
    waits_for_data = split(straggling_s=0.5, late_data_s=0.5)

    assert "node-b" in advice.on_lateness(ONE, computes_long)
    assert advice.on_lateness(ONE, waits_for_data) == advice.on_slow_data("node-b")
    assert advice.on_lateness(IN_TURN, waits_for_data) == advice.on_slow_data()
    assert "node-b" not in advice.on_lateness(IN_TURN, computes_long)


def test_several_late_hosts_are_spoken_of_as_several():
    several = ONE._replace(who="node-b and node-c", are_several=True)

    assert "whether they are throttled" in advice.on_lateness(several, split(straggling_s=0.5))


def faults_of(tmp_path, step_s, lost_steps):
    """Of a run that crashes after twenty steps, and starts again a thousand seconds after its first
    start."""
    run = new_run(tmp_path)
    saved = 20 - lost_steps
    events = [(step_s * n, step(n, step_s)) for n in range(1, 21)]
    events.insert(saved, (step_s * saved, CheckpointSaved(saved, "a", 1, 0.1)))
    crash = AttemptEnded(20, "failed", "crash")
    run.with_events([(0.0, started()), *events, (20 * step_s, crash)])
    again = [(float(n), step(saved + n, 1.0)) for n in range(1, 41)]
    start = started(attempt=2, first_step=saved + 1)
    run.with_events(
        [(0.0, start), *again, (41.0, AttemptEnded(saved + 40, "finished", "done"))], attempt=2
    )
    return read(run).faults


@pytest.mark.parametrize(
    ("step_s", "lost_steps", "said"),
    [(10.0, 1, advice.START_AGAIN), (49.0, 15, advice.SAVE_MORE_OFTEN)],
)
def test_advice_on_faults_is_against_what_they_cost_most(tmp_path, step_s, lost_steps, said):
    assert advice.on_faults(faults_of(tmp_path, step_s, lost_steps)) == said
