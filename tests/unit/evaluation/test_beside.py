import sys

import psutil
import pytest
from unit.evaluation.score_answer import ANSWER

from dragoman.config import DecodingSettings
from dragoman.errors import RunError
from dragoman.evaluation.beside import ScoreRequest, SideProcess, idle_cores


@pytest.fixture
def request_of_step_5(tmp_path):
    return ScoreRequest(
        run=tmp_path,
        step=5,
        best_step=None,
        sources=["one „two“"] * 20_000,  # more than a pipe holds
        references=["eins"] * 20_000,
        decoding=DecodingSettings(beam=1),
        longest=100,
        target_language="de",
        samples=1,
    )


def started(request, program):
    return SideProcess(request, 3, program=(sys.executable, "-c", program))


def test_a_process_reads_a_request_and_its_answer_comes_back(request_of_step_5):
    program = (
        "import os, sys; from dragoman.evaluation.beside import ScoreRequest\n"
        "request = ScoreRequest.model_validate_json(sys.stdin.buffer.read())\n"
        "assert (len(request.sources), request.step) == (20_000, 5)\n"
        "assert sys.argv[1:] == [str(os.getppid()), '3'] and os.environ['OMP_NUM_THREADS'] == '3'\n"
        f"print({ANSWER.model_dump_json()!r})"
    )
    process = started(request_of_step_5, program)
    assert process.wait(60)
    assert process.answer() == ANSWER
    process.close()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("raise MemoryError('no more')", "failed: MemoryError: no more"),
        ("raise SystemExit(3)", "failed: exit code 3"),
        ("print('{')", "has given no whole answer"),
        ("pass", "has given no whole answer"),
    ],
)
def test_a_process_that_fails_says_why_in_a_sentence(request_of_step_5, program, reason):
    process = started(request_of_step_5, program)
    assert process.wait(60)
    with pytest.raises(RunError, match=reason):
        process.answer()
    process.close()


def test_a_process_that_is_not_wanted_any_more_is_ended(request_of_step_5):
    process = started(request_of_step_5, "import signal; signal.pause()")
    seen = psutil.Process(process.pid)
    assert not process.wait(0.2)
    assert not process.has_ended
    process.close()
    assert not seen.is_running()


@pytest.mark.parametrize(
    ("cores", "workers", "threads", "idle"), [(32, 4, 2, 24), (8, 2, 2, 4), (2, 1, 2, 1)]
)
def test_cores_that_do_not_train_are_idle_and_one_is_shared_at_least(cores, workers, threads, idle):
    assert idle_cores(cores, workers, threads) == idle
