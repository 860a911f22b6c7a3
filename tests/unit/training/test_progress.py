from dataclasses import replace

import pytest

from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.progress import ProgressLog

EVALUATED = Evaluated(10, 2.5, 2.25, 31.5, 50.0, "nrefs:1", "nrefs:1", True, seconds=4.0)


def done(step, step_s=0.5):
    return StepDone(step, 0.25, 3.0, 1000, 1e-3, 1.0, True, step_s)


@pytest.fixture
def logged(caplog):
    caplog.set_level("INFO", "dragoman")
    return lambda: caplog.text


def test_progress_has_the_rate_and_the_time_that_is_left(logged):
    log = ProgressLog(last_step=120, every_s=0.0, silent=False)
    for step in range(1, 101):
        log.step(done(step))
    last = logged().splitlines()[-1]
    assert "step 100/120" in last
    assert "2,000 tokens/s" in last
    assert "10 s left" in last


def test_evaluations_are_part_of_the_time_that_is_left(logged):
    log = ProgressLog(last_step=20, every_s=0.0, silent=False)
    for step in range(1, 10):
        log.step(done(step))
    log.evaluation(EVALUATED)
    log.step(done(10))
    assert (
        "9 s left" in logged().splitlines()[-1]
    )  # 10 steps of 0.5 s, and 0.4 s of evaluation each


def test_a_run_without_a_last_step_has_no_time_left(logged):
    ProgressLog(last_step=None, every_s=0.0, silent=False).step(done(1))
    assert " left" not in logged()


def test_only_one_rank_logs(logged):
    log = ProgressLog(last_step=20, every_s=0.0, silent=True)
    log.step(done(1))
    log.evaluation(EVALUATED)
    log.log("something")
    log.end()
    assert logged() == ""


def test_scores_that_come_later_say_how(logged):
    log = ProgressLog(last_step=20, every_s=0.0, silent=False)
    log.evaluation(replace(EVALUATED, bleu=None, chrf=None, is_best=False))
    assert logged().strip().endswith("in 4.0 s, scores follow")
    log.evaluation(replace(EVALUATED, arrived_step=14, beside_s=7.5, seconds=0.0))
    assert "step 10:  BLEU 31.5  chrF 50.0  in 7.5 s beside steps  (best so far)" in logged()
    log.evaluation(replace(EVALUATED, arrived_step=20, seconds=3.0))
    assert "afterwards, waited for 3.0 s" in logged()
