"""The scorer with stand-ins for its process and for torch."""

from unittest.mock import Mock

import pytest
import torch
from unit.evaluation.score_answer import ANSWER

from dragoman.config import DecodingSettings, parse_config
from dragoman.errors import RunError
from dragoman.evaluation.beside import ScoreRequest
from dragoman.training import beside
from dragoman.training.beside import Scorer, threads_for, why_not_beside

CPU = torch.device("cpu")
LATE = ANSWER.model_copy(update={"seconds": 9.0})


def never():
    return False


class StandIn:
    """A process that ends when a test wants it to."""

    started: list["StandIn"]
    refusal: OSError | None = None

    def __init__(self, request, threads):
        if self.refusal:
            raise self.refusal
        self.request, self.threads = request, threads
        self.has_ended = self.is_closed = False
        self.result = ANSWER
        self.started.append(self)

    def wait(self, timeout_s):
        self.has_ended = self.has_ended or timeout_s > 0
        return self.has_ended

    def answer(self):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def close(self):
        self.is_closed = True


@pytest.fixture
def processes(monkeypatch):
    """All that have been started; torch answers LATE."""
    monkeypatch.setattr(StandIn, "started", [], raising=False)
    monkeypatch.setattr(beside, "SideProcess", StandIn)
    monkeypatch.setattr(beside, "score_checkpoint", Mock(return_value=LATE))
    return StandIn.started


def request(step=5):
    return ScoreRequest(
        run="run",
        step=step,
        best_step=None,
        sources=[],
        references=[],
        decoding=DecodingSettings(),
        longest=9,
        target_language="de",
        samples=0,
    )


@pytest.fixture
def scorer(processes):
    found = Scorer(True, 3, CPU)
    found.expect(request())
    return found


def test_a_process_begins_when_the_checkpoint_is_saved_and_answers_once(scorer, processes):
    assert scorer.poll(is_saved=False) is None
    assert processes == []
    assert scorer.poll(is_saved=True) is None
    (process,) = processes
    assert (process.request.step, process.threads) == (5, 3)
    assert scorer.poll(is_saved=True) is None
    process.has_ended = True
    assert scorer.poll(is_saved=True) == ANSWER
    assert process.is_closed
    assert scorer.poll(is_saved=True) is None
    outcome, is_news = scorer.wait(never)
    assert (outcome.answer, outcome.is_beside, outcome.problem) == (ANSWER, True, "")
    assert not is_news
    assert len(processes) == 1


def test_what_is_not_there_is_waited_for_and_news(scorer, processes):
    outcome, is_news = scorer.wait(never)
    assert (outcome.answer, outcome.is_beside, is_news) == (ANSWER, True, True)
    assert len(processes) == 1


@pytest.mark.parametrize("seen_before", [True, False])
def test_where_the_process_fails_torch_does_it(scorer, processes, seen_before):
    scorer.poll(is_saved=True)
    processes[0].result = RunError("it was ended by SIGKILL")
    if seen_before:
        processes[0].has_ended = True
        assert scorer.poll(is_saved=True) is None
    outcome, is_news = scorer.wait(never)
    assert (outcome.answer, outcome.is_beside, is_news) == (LATE, False, True)
    assert outcome.problem == "it was ended by SIGKILL"
    assert processes[0].is_closed


def test_where_no_process_can_be_started_torch_does_it(scorer, monkeypatch):
    monkeypatch.setattr(StandIn, "refusal", OSError(28, "No space left on device"))
    assert scorer.poll(is_saved=True) is None
    outcome, _ = scorer.wait(never)
    assert outcome.answer == LATE
    assert "No space left on device" in outcome.problem


def test_a_process_that_takes_too_long_is_ended(scorer, processes, monkeypatch):
    monkeypatch.setattr(beside, "LONGEST_WAIT_S", 0.0)
    outcome, _ = scorer.wait(never)
    assert outcome.answer == LATE
    assert "in vain" in outcome.problem
    assert processes[0].is_closed


@pytest.mark.parametrize("looks", [1, 3])
def test_training_that_is_to_stop_does_not_wait(scorer, processes, monkeypatch, looks):
    monkeypatch.setattr(StandIn, "wait", lambda self, timeout_s: self.has_ended)
    answers = iter([False] * (looks - 1) + [True])
    assert scorer.wait(lambda: next(answers)) is None
    assert not any(process.is_closed for process in processes)
    scorer.close()
    assert all(process.is_closed for process in processes)


def test_what_is_known_is_not_left_to_the_next_attempt(scorer, processes):
    scorer.poll(is_saved=True)
    processes[0].has_ended = True
    assert scorer.poll(is_saved=True) == ANSWER
    assert scorer.wait(lambda: True) is not None


def test_where_torch_fails_as_well_there_are_no_scores(scorer, monkeypatch):
    monkeypatch.setattr(beside, "score_checkpoint", Mock(side_effect=ValueError("is torn")))
    monkeypatch.setattr(StandIn, "refusal", OSError("no"))
    outcome, _ = scorer.wait(never)
    assert outcome.answer is None
    assert "no process" in outcome.problem
    assert "is torn" in outcome.problem


def test_nothing_is_computed_that_is_not_expected(scorer, processes):
    scorer.poll(is_saved=True)
    scorer.expect(request())
    assert not processes[0].is_closed  # it is the same
    scorer.expect(request(step=10))
    assert processes[0].is_closed
    scorer.poll(is_saved=True)
    scorer.expect(None)
    assert [process.is_closed for process in processes] == [True, True]
    assert scorer.poll(is_saved=True) is None
    assert len(processes) == 2


def test_a_run_that_is_not_evaluated_beside_any_more_settles_what_it_has_left(processes):
    scorer = Scorer(False, 3, CPU)
    scorer.expect(request())
    assert scorer.poll(is_saved=True) is None
    outcome, is_news = scorer.wait(never)
    assert (outcome.answer, outcome.problem, is_news) == (LATE, "", True)
    assert processes == []


@pytest.mark.parametrize(
    ("setting", "device", "threads"),
    [("0", CPU, 32 - 2 * 4), ("0", torch.device("cuda"), 32 - 2 * 2), ("5", CPU, 5)],
)
def test_threads_are_those_that_do_not_train_unless_set(
    digits, monkeypatch, setting, device, threads
):
    overrides = ["evaluation.beside=true", f"evaluation.beside_threads={setting}"]
    config = parse_config(digits.read_text(encoding="utf-8"), "x", overrides)
    monkeypatch.setattr(beside, "usable_cores", lambda: 32)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert threads_for(config, workers=2, device=device) == threads


@pytest.mark.parametrize(("asked", "found"), [(True, True), (False, False), (True, False)])
def test_without_its_package_training_stops_for_evaluations_and_says_so(
    digits, monkeypatch, asked, found
):
    overrides = [f"evaluation.beside={str(asked).lower()}"]
    config = parse_config(digits.read_text(encoding="utf-8"), "x", overrides)
    monkeypatch.setattr(beside.importlib.util, "find_spec", lambda name: found or None)
    group = Mock(broadcast=lambda message: message)
    assert bool(why_not_beside(config, group)) == (asked and not found)
