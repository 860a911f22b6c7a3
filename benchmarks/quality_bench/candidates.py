"""The two candidates: how each is started, what it records, and how it translates the test set."""

import json
import os
import subprocess
import sys
from pathlib import Path

from train_bench.candidates import PEERS as LOOPS
from train_bench.candidates import SOURCE, threads_of
from train_bench.watch import CandidateError, tail

from dragoman.rundir import RunDir
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.telemetry.read.events import read_events
from quality_bench.curve import Evaluation, Record, Step
from quality_bench.task import BEAM, Task
from quality_bench.turns import Candidate

LOOP = Path(__file__).parent / "peers" / "hugging_face.py"
OURS, HUGGING_FACE = "ours", "hugging-face"
NAMES = {OURS: "dragoman train", HUGGING_FACE: "Hugging Face Marian, plain loop"}


def our_candidate(task: Task, run: Path, workers: int, threads: int) -> Candidate:
    command = [sys.executable, "-m", "dragoman", "train", task.recipe]
    command += ["--run", str(run), "--workers", str(workers)]
    command += [word for override in task.overrides for word in ("--set", override)]
    extra = threads_of(max(1, threads // workers)) | _our_path()
    return Candidate(OURS, command, run.with_suffix(".log"), extra)


def loop_candidate(python: Path, job: Path, threads: int) -> Candidate:
    command = [str(python), str(LOOP), "train", str(job)]
    extra = threads_of(threads) | _loop_path()
    return Candidate(HUGGING_FACE, command, job.parent / "output.log", extra)


def read_run(run: Path) -> Record:
    """Reads steps and evaluations from the events that a run has recorded so far."""
    steps, evaluations = [], []
    for _, _, stamped in read_events(RunDir(run), rank=0, kinds={StepDone, Evaluated}):
        at, event = stamped.monotonic_at, stamped.event
        if isinstance(event, StepDone):
            steps.append(Step(at - event.step_s, at, event.tokens))
        elif isinstance(event, Evaluated) and event.bleu is not None:
            evaluations.append(Evaluation(at - event.seconds, at, event.step, event.bleu))
    return Record(steps, evaluations)


def read_loop_log(log: Path) -> Record:
    """Reads the same from what the loop has logged so far; its last line may be half a line."""
    steps, evaluations = [], []
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    for line in lines:
        record = json.loads(line)
        begin, end = record["begin"], record["end"]
        if record["kind"] == "step":
            steps.append(Step(begin, end, record["tokens"]))
        else:
            evaluations.append(Evaluation(begin, end, record["step"], record["bleu"]))
    return Record(steps, evaluations)


def translate_with_run(task: Task, run: Path, threads: int) -> list[str]:
    """Translates the test set with the best weights of a run, as a user does."""
    output = run.with_suffix(".test.txt")
    command = [sys.executable, "-m", "dragoman", "translate", str(run), "--beam", str(BEAM)]
    command += ["--lines", "whole", "--input", str(task.text("test", "source"))]
    command += ["--output", str(output)]
    _run(command, run.with_suffix(".translate.log"), threads_of(threads) | _our_path())
    return read_lines(output)


def translate_with_loop(python: Path, job: Path, threads: int) -> list[str]:
    command = [str(python), str(LOOP), "translate", str(job)]
    _run(command, job.parent / "translate.log", threads_of(threads) | _loop_path())
    return read_lines(Path(json.loads(job.read_text())["translations"]))


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def _run(command: list[str], output: Path, extra: dict[str, str]) -> None:
    with output.open("wb") as file:
        done = subprocess.run(
            command, stdout=file, stderr=file, env={**os.environ, **extra}, check=False
        )
    if done.returncode:
        raise CandidateError(f"exit code {done.returncode}: {tail(output)}")


def _our_path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}


def _loop_path() -> dict[str, str]:
    # The model of the other benchmark's loop, and nothing of this project.
    return {"PYTHONPATH": str(LOOPS)}
