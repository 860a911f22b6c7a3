import pytest
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.diagnosis.run.facts import read_facts
from dragoman.report.content import RunState
from dragoman.report.state import in_words, state_of
from dragoman.rundir import write_json
from dragoman.telemetry.events import AttemptEnded


def read_state(run: FakeRun, read_s_after_start: float = 20.0) -> RunState:
    return state_of(read_facts(run.directory, read_at=WALL_AT + read_s_after_start))


@pytest.mark.parametrize(("silent_s", "state"), [(100.0, "training"), (130.0, "broken off")])
def test_a_run_that_is_silent_for_long_has_broken_off(empty_run, silent_s, state):
    empty_run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])

    assert read_state(empty_run, 2.0 + silent_s).name == state


@pytest.mark.parametrize(("silent_s", "state"), [(2900.0, "training"), (3100.0, "broken off")])
def test_a_run_with_long_silences_is_given_more_time(empty_run, silent_s, state):
    empty_run.with_events([(0.0, started()), (1000.0, step(1))])

    assert read_state(empty_run, 1000.0 + silent_s).name == state


def test_a_heartbeat_is_a_sign_of_life(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1))])
    write_json(empty_run.directory.status, {"state": "training", "heartbeat_at": WALL_AT + 500})

    found = read_state(empty_run, 505.0)
    assert (found.name, found.silent_s) == ("training", 5.0)


def test_a_training_run_says_how_long_it_still_takes(empty_run):
    empty_run.with_events([(0.0, started()), (4.0, step(1))])

    assert read_state(empty_run, 5.0).remaining_s == 3 * 4.0


def test_the_first_rank_to_fail_gives_the_reason(empty_run):
    def failed(why: str) -> AttemptEnded:
        return AttemptEnded(1, "failed", why)

    empty_run.with_events([(0.0, started(ranks=2)), (9.0, failed("lost rank 1"))])
    empty_run.with_events([(0.0, started(rank=1, ranks=2)), (8.0, failed("no memory"))], rank=1)
    found = read_state(empty_run)

    assert (found.name, found.reason) == ("failed", "rank 1: no memory")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (("training", "", 5, 10, 3.0, 60.0), "step 5 of 10 is done, about 1 min left"),
        (("broken off", "", 5, 10, 7200.0, None), "broke off after step 5 of 10, 2 h before"),
        (("preempted", "a signal", 5, None, 0.0, None), "stopped after step 5: a signal"),
        (("failed", "no memory", 5, None, 0.0, None), "failed after step 5: no memory"),
        (("failed", "lost\n  it stood at", 5, None, 0.0, None), "after step 5: lost. The same"),
    ],
)
def test_each_state_is_told_in_a_sentence(state, words):
    assert words in in_words(*state)


@pytest.mark.parametrize(
    ("cause", "goes_on"),
    [
        ("error", True),
        ("lost-rank", True),
        ("weights-differ", False),
        ("diverged", False),
        ("out-of-memory", False),
    ],
)
def test_a_run_is_not_asked_to_go_on_into_the_same_fault(empty_run, cause, goes_on):
    end = AttemptEnded(1, "failed", "why", cause)
    empty_run.with_events([(0.0, started()), (1.0, step(1)), (2.0, end)])
    found = read_state(empty_run)

    assert ("goes on from the last checkpoint" in found.sentence) == goes_on
    assert bool(found.command) == goes_on


def test_another_launcher_starts_the_run_again(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1))])
    attempt = {"attempt": 1, "members": [], "launcher": "srun", "command": ["dragoman"]}
    write_json(empty_run.directory.manifest, {"attempts": [attempt]})
    found = read_state(empty_run, 3600.0)

    assert (found.name, found.command) == ("broken off", "")
    assert "with srun" in found.sentence
