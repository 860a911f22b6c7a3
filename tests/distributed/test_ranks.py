"""Real processes over gloo: what several ranks compute together, and how they agree."""

import json
import os
import signal
import textwrap

import pytest
from processes import (
    ENDLESS,
    dragoman,
    start_dragoman,
    steps,
    wait_for_step,
    wait_until,
    worker_processes,
)

from dragoman.cli.train import PREEMPTED
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import Evaluated
from dragoman.telemetry.read.events import read_events

pytestmark = pytest.mark.timeout(240)


def test_sums_broadcast_and_gather_agree_on_all_ranks(on_ranks, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            """
            import json
            from pathlib import Path
            from dragoman.distributed.group import join
            with join("cpu") as group:
                answer = [
                    group.rank,
                    group.sums([1.5, float(group.rank)]),
                    group.broadcast({"from": group.rank} if group.leads else None),
                    group.gather("ä" * (group.rank + 1)),
                ]
                path = Path(__file__).with_name(f"answer-{group.rank}.json")
                path.write_text(json.dumps(answer))
            """
        )
    )
    done = on_ranks(3, script)
    assert done.returncode == 0, done.stderr
    answers = [json.loads((tmp_path / f"answer-{rank}.json").read_text()) for rank in range(3)]
    expected = [[4.5, 3.0], {"from": 0}, ["ä", "ää", "äää"]]
    assert answers == [[rank, *expected] for rank in range(3)]


REGULARIZED = (
    *("--set", "training.subword_dropout=0.2", "--set", "training.r_drop=2.0"),
    *("--set", "training.micro_batch_tokens=400"),
)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param((), id="usual"),
        pytest.param(REGULARIZED, id="regularized", marks=pytest.mark.cluster),
    ],
)
def test_one_rank_with_two_micro_batches_equals_two_ranks_with_one(digits, tmp_path, settings):
    for workers in (1, 2):
        done = dragoman(
            *("train", digits, "--run", tmp_path / f"by-{workers}", "--workers", workers, *settings)
        )
        assert done.returncode == 0, done.stderr
    alone, together = steps(tmp_path / "by-1"), steps(tmp_path / "by-2")
    assert sorted(alone) == sorted(together) == list(range(1, 21))
    for step, one in alone.items():
        assert one.tokens == together[step].tokens
        assert one.loss == pytest.approx(together[step].loss, abs=1e-5)
        # Adam is blind to a constant factor, so the losses alone would not show a wrong divisor.
        assert one.gradient_norm == pytest.approx(together[step].gradient_norm, rel=1e-3)
    assert settings or "2 micro-batches a step" in done.stdout
    by_one, by_two = (
        [
            recorded.stamped.event
            for recorded in read_events(RunDir(tmp_path / f"by-{workers}"), rank=0)
            if isinstance(recorded.stamped.event, Evaluated)
        ]
        for workers in (1, 2)
    )
    assert len(by_one) == len(by_two) > 0
    for one, two in zip(by_one, by_two, strict=True):
        assert one.validation_loss == pytest.approx(two.validation_loss, abs=1e-4)
        assert one.validation_loss_error == pytest.approx(two.validation_loss_error, rel=1e-2)


@pytest.mark.parametrize("kind", ["average", "schedule-free", "muon"])
def test_ranks_share_a_step_with_every_optimizer(kind, one, two):
    alone, together = one.steps("optimizers", kind), two.steps("optimizers", kind)
    assert sorted(alone) == sorted(together) == list(range(1, 21))
    for step, done in alone.items():
        assert done.loss == pytest.approx(together[step].loss, abs=1e-5)
        assert done.gradient_norm == pytest.approx(together[step].gradient_norm, rel=1e-3)
    first, second = (seen[kind]["weights"] for seen in two.seen("optimizers"))
    assert first == second != {}


def test_a_signal_to_one_rank_stops_all_and_the_same_command_goes_on(digits, tmp_path):
    run = tmp_path / "run"
    command = ["train", digits, "--run", run, "--workers", "2"]
    process = start_dragoman(*command, *ENDLESS)
    wait_for_step(run, 3)
    workers = worker_processes(run)
    assert len(workers) == 2
    os.kill(workers[1], signal.SIGTERM)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output
    status = read_json(RunDir(run).status)
    assert status["state"] == "preempted"
    assert (run / "checkpoints" / "latest").resolve().name == f"step-{status['step']:08d}"

    more = dragoman(*command, "--set", f"training.steps={status['step'] + 2}")
    assert more.returncode == 0, more.stderr
    assert f"going on after step {status['step']:,}" in more.stdout
    assert read_json(RunDir(run).status)["state"] == "finished"


def test_ctrl_c_saves_and_leaves_no_process(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output
    assert "Traceback" not in output
    assert worker_processes(run) == []
    reason = read_json(RunDir(run).status)["reason"]
    assert reason == "asked to stop by Ctrl-C (SIGINT)"
    assert reason in output


@pytest.mark.parametrize(
    ("workers", "number", "sign"),
    [(1, signal.SIGINT, "Ctrl-C"), (2, signal.SIGTERM, "SIGTERM")],
)
def test_what_asked_a_run_to_stop_is_recorded(workers, number, sign, digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", workers, *ENDLESS)
    wait_for_step(run, 3)
    process.send_signal(number)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output
    status = read_json(RunDir(run).status)
    assert sign in status["reason"]
    assert {"Ctrl-C", "SIGTERM"} - {sign} == {w for w in ("Ctrl-C", "SIGTERM") if w not in output}
    assert dragoman("report", run).returncode == 0
    assert status["reason"] in (run / "report.md").read_text()


def test_when_the_launcher_is_killed_its_workers_end_too(digits, tmp_path):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 3)
    process.kill()
    process.communicate()
    wait_until(lambda: worker_processes(run) == [])
    status = read_json(RunDir(run).status)
    assert (status["state"], "launcher is gone" in status["reason"]) == ("preempted", True)


def test_more_workers_than_micro_batches_are_refused_in_one_sentence(digits, tmp_path):
    done = dragoman(
        *("train", digits, "--run", tmp_path / "run", "--workers", 3, "--oversubscribe")
    )
    assert done.returncode == 2
    assert "3 workers, but a step has only 2 micro-batches" in done.stderr
    assert "Traceback" not in done.stderr


def test_more_workers_than_cores_are_refused_before_anything_is_touched(digits, tmp_path):
    done = dragoman("train", digits, "--run", tmp_path / "run", "--workers", 1000)
    assert done.returncode == 2
    assert "1000 workers requested, but only" in done.stderr
    assert "--oversubscribe" in done.stderr
    assert not (tmp_path / "run").exists()


def test_torchrun_itself_can_start_it(on_ranks, digits, tmp_path):
    assert dragoman("prepare", digits).returncode == 0
    # Without the two dashes torchrun takes --run for a short form of its own --run-path.
    done = on_ranks(2, "-m", "--", "dragoman", "train", digits, "--run", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert read_json(RunDir(tmp_path / "run").status)["ranks"] == 2
