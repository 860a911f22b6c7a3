import pytest
from unit.diagnosis.speed_run import new_run, read
from unit.report.fake_run import started, step

from dragoman.diagnosis.answers.fault_advice import advice_on, equal_until
from dragoman.rundir import write_json
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved


def ended_run(tmp_path, steps=1500, launcher="", **end):
    """Two hosts, a checkpoint each 200 steps, and an end after the last step."""
    run = new_run(tmp_path)
    recipe = run.directory.config.read_text().replace("steps = 4\n", "steps = 5000\n", 1)
    run.directory.config.write_text(recipe)
    done = [(float(n), step(n)) for n in range(1, steps + 1)]
    for n in range(200, steps, 200):
        done.append((n + 0.5, CheckpointSaved(n, f"step-{n:08d}", 1, 0.1)))
        folder = run.directory.checkpoints / f"step-{n:08d}"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").touch()
    end = AttemptEnded(steps, "failed", "it failed", **end)
    for rank in (0, 1):
        events = [(0.0, started(rank=rank, ranks=2)), *done, *([(steps + 1.0, end)] * (rank == 0))]
        run.with_events(sorted(events, key=lambda event: event[0]), rank=rank)
    if launcher:
        hosts = [{"host": f"host-{rank}", "device": "cpu"} for rank in (0, 1)]
        attempt = {"attempt": 1, "members": hosts, "launcher": launcher, "command": ["x"]}
        write_json(run.directory.manifest, {"attempts": [attempt]})
    return read(run, steps + 4000.0)


def test_of_different_weights_the_host_is_suspected_and_what_it_saved_is_set_aside(tmp_path):
    culprit = {"culprit_rank": 1, "culprit_host": "host-1"}
    run = ended_run(tmp_path, cause="weights-differ", **culprit)
    assert equal_until(run, run.faults.unresumed) == 1000
    look, move = advice_on(run, [])
    assert look.command.startswith("ssh host-1 ")
    assert "step-00001200 checkpoints/step-00001400" in move.command
    assert "step-00001000" not in move.command


def test_of_different_weights_nobody_is_suspected_where_nobody_can_tell(tmp_path):
    run = ended_run(tmp_path, cause="weights-differ")
    assert run.faults.unresumed.host == ""
    assert "ssh host-0" in advice_on(run, [])[0].command
    assert "ssh host-1" in advice_on(run, [])[0].command


def test_with_another_launcher_checkpoints_are_moved_in_this_folder(tmp_path):
    move = advice_on(ended_run(tmp_path, launcher="srun", cause="weights-differ"), [])[1]
    assert move.command.startswith(f"cd {tmp_path / 'run'} && mkdir")


@pytest.mark.parametrize(
    ("cause", "words"), [("out-of-memory", "data.max_length=128"), ("diverged", "schedule.")]
)
def test_a_cause_that_stays_gets_its_cure_and_nothing_else(tmp_path, cause, words):
    found = advice_on(ended_run(tmp_path, cause=cause), [])
    assert words in found[0].command
    assert not any("checkpoints." in each.command for each in found)
    assert not any(each.command.startswith("until") for each in found)


def test_a_full_disk_is_looked_at_where_it_is(tmp_path):
    full = {"culprit_rank": 1, "culprit_host": "host-1", "could_not_write": True}
    (advice,) = advice_on(ended_run(tmp_path, cause="error", **full), [])
    assert advice.command == "ssh host-1 'df -h'"


def test_no_shell_starts_what_another_launcher_has_started(tmp_path):
    run = new_run(tmp_path)
    recipe = run.directory.config.read_text().replace("steps = 4\n", "steps = 5000\n", 1)
    run.directory.config.write_text(recipe)
    stop = AttemptEnded(100, "preempted", "asked to stop", "signal")
    for number in (1, 2):
        events = [(0.0, started(attempt=number, first_step=100 * number - 99))]
        events += [(1.0 + n, step(100 * number - 100 + n)) for n in range(1, 101)]
        saved = CheckpointSaved(100 * number, "a", 1, 0.1)
        run.with_events([*events, (102.0, saved), (103.0, stop)], attempt=number)
    attempts = [
        {"attempt": n, "members": [], "launcher": "torchrun", "command": ["x"]} for n in (1, 2)
    ]
    write_json(run.directory.manifest, {"attempts": attempts})
    (advice,) = advice_on(read(run), [])
    assert "torchrun" in advice.text
    assert advice.command == f"dragoman inspect {run.directory.root}"


def test_a_lost_rank_is_looked_for_on_its_host(tmp_path):
    lost = {"culprit_rank": 1, "culprit_host": "host-1"}
    look = advice_on(ended_run(tmp_path, cause="lost-rank", **lost), [])[0]
    assert look.command.startswith("ssh host-1 'journalctl -k")
