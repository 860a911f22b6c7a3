import subprocess

import pytest
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


def failing_run(
    tmp_path, steps, reason="ValueError: line {} is odd", cause="error", state="failed"
):
    """Attempts that go on from step 400 and end after these steps."""
    run = new_run(tmp_path)
    recipe = run.directory.config.read_text().replace("steps = 4\n", "steps = 5000\n", 1)
    run.directory.config.write_text(recipe)
    begin = 1
    for number, last in enumerate(steps, 1):
        events = [(0.0, started(attempt=number, first_step=begin))]
        events += [(1.0 + n - begin, step(n)) for n in range(begin, last + 1)]
        if begin == 1:
            events.append((400.5, CheckpointSaved(400, "step-00000400", 1, 0.1)))
        at = 2.0 + last - begin
        if state:
            events.append((at, AttemptEnded(last, state, reason.format(number), cause)))
        run.with_events(sorted(events, key=lambda event: event[0]), attempt=number)
        begin = 401
    return run


@pytest.mark.parametrize("steps", [(412, 412, 412), (411, 413, 412, 412)])
def test_the_same_failure_at_the_same_step_has_its_cause_there(tmp_path, steps):
    found = faults.answer(read(failing_run(tmp_path, steps)))
    assert "The same failure came" in found.sentence
    commands = [advice.command for advice in found.advice]
    assert commands[0].startswith("grep ")
    assert "training.seed=2" in commands[1]
    assert not any("checkpoints" in command for command in commands)
    assert "same place" in found.plain


@pytest.mark.parametrize(
    ("cause", "reason", "setting"),
    [
        # Micro-batches of single pairs were too large, so smaller ones cannot help.
        ("out-of-memory", "OutOfMemoryError: {} bytes", "data.max_length=128"),
        ("diverged", "DivergedError: {}", "schedule.scale=1.0"),
    ],
)
def test_a_known_cause_gets_what_helps_against_it(tmp_path, cause, reason, setting):
    found = faults.answer(read(failing_run(tmp_path, (412,) * 3, reason, cause)))
    assert setting in found.advice[0].command


def test_a_run_killed_at_the_same_step_is_looked_for_in_the_kernels_log(tmp_path):
    found = faults.answer(read(failing_run(tmp_path, (412,) * 3, state="")))
    command = found.advice[0].command
    assert "journalctl -k" in command
    assert "ssh" not in command  # there is one host
    assert subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0


@pytest.mark.parametrize("steps", [(412, 412), (412, 700, 1200)])
def test_failures_apart_are_not_the_same(tmp_path, steps):
    found = faults.answer(read(failing_run(tmp_path, steps)))
    assert "The same failure came" not in found.sentence


def test_three_steps_are_too_few_for_advice(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    run.with_events([(0.0, started(attempt=2, first_step=3)), (1.0, step(3))], attempt=2)
    found = faults.answer(read(run))
    assert figure(found, "lost time") > 60
    assert not found.advice


def test_waiting_for_a_start_is_ended_by_the_shell(tmp_path):
    (advice,) = faults.answer(read(failing_run(tmp_path, (500, 800, 900)))).advice
    assert advice.command.startswith("until dragoman train ")
    assert f"--run {tmp_path / 'run'};" in advice.command
    assert subprocess.run(["bash", "-n", "-c", advice.command], check=False).returncode == 0
    assert advice.saves_s > 60


def test_lost_work_is_saved_more_often(tmp_path):
    run = failing_run(tmp_path, (1000, 1390))
    (advice,) = faults.answer(read(run)).advice
    assert advice.command == "checkpoints.lost_minutes = 2.5"
    assert advice.saves_s > 60


def test_a_run_that_has_ended_is_not_started_again(tmp_path):
    run = failing_run(tmp_path, (500, 800, 900))
    run.with_events(
        [
            (0.0, started(attempt=4, first_step=401)),
            *((1.0 + n - 401, step(n)) for n in range(401, 1001)),
            (700.0, AttemptEnded(1000, "finished", "done", "steps")),
        ],
        attempt=4,
    )
    (advice,) = faults.answer(read(run)).advice
    assert f"--run {tmp_path / 'run'}-2" in advice.command
