"""Faults and their cost from event files written here, as attempts of all kinds leave them."""

import pytest
from unit.report.fake_run import CONFIG

from dragoman.diagnosis.run.facts import read_facts
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    Evaluated,
    Incident,
    Stamped,
    StepDone,
    to_line,
)

BEGAN_AT = 1_700_000_000.0
KILLED = "no rank recorded an end: killed, or the host was lost"


def started(attempt, first_step, rank=0, ranks=1, host="n1"):
    return AttemptStarted(attempt, rank, ranks, host, "cpu", first_step)


def step(number):
    """A second each."""
    return StepDone(number, 0.1, 3.0, 100, 1e-3, 1.0, True, 1.0)


def steps(first, last):
    return [step(number) for number in range(first, last + 1)]


def saved(number):
    return CheckpointSaved(number, f"step-{number:08d}", 1000, 0.5)


def evaluated(number):
    return Evaluated(number, 3.0, None, 20.0, 50.0, "", "", True, 2.0)


TAKES_S = {StepDone: 1.0, Evaluated: 2.0, CheckpointSaved: 0.5}


class Recording:
    """Writes events as they would come, one after the other on a clock of its own."""

    def __init__(self, root):
        self.run = RunDir(root)
        self.run.events.mkdir(parents=True)
        self.run.config.write_text(CONFIG)

    def attempt(self, number, *events, at=0.0, rank=0, torn="", clock=7000.0):
        """`at`: seconds after the run began, when its first event comes."""
        lines = []
        now = 0.0
        for event in events:
            for each in event if isinstance(event, list) else [event]:
                if isinstance(each, float):
                    now += each  # nothing happens for so long
                    continue
                now += TAKES_S.get(type(each), 0.0)
                lines.append(to_line(Stamped(BEGAN_AT + at + now, clock + now, each)))
        path = self.run.events_of(number, rank)
        path.write_text("".join(lines) + torn, encoding="utf-8")
        return self

    def history(self, read_at=BEGAN_AT + 1e6):
        return read_facts(self.run, read_at).faults


@pytest.fixture
def recording(tmp_path):
    return Recording(tmp_path / "run")


def accounts(fault):
    return fault.lost_steps, fault.lost_s, fault.down_s


def test_a_run_without_faults_has_cost_nothing(recording):
    recording.attempt(
        *(1, started(1, 1), steps(1, 10), evaluated(10), saved(10)),
        AttemptEnded(10, "finished", "done"),
    )
    history = recording.history()
    assert history.faults == ()
    assert (history.useful_steps, history.all_steps) == (10, 10)
    assert history.useful_s == history.all_s == pytest.approx(12.5)
    assert (history.step_goodput, history.time_goodput) == (1.0, 1.0)


def test_no_events_at_all_are_no_fault(recording):
    history = recording.history()
    assert (history.faults, history.all_steps, history.step_goodput) == ((), 0, 1.0)


def test_a_killed_attempt_costs_the_steps_since_its_checkpoint_and_the_time_until_the_next(
    recording,
):
    recording.attempt(1, started(1, 1), steps(1, 5), saved(5), steps(6, 8))
    recording.attempt(
        *(2, started(2, 6), steps(6, 10), saved(10), AttemptEnded(10, "finished", "done")),
        at=20.0,
        clock=50.0,  # another boot of the machine
    )
    history = recording.history()
    (fault,) = history.faults
    assert (fault.kind, fault.what, fault.attempt, fault.step) == ("broken off", KILLED, 1, 8)
    assert (fault.rank, fault.host, fault.at) == (0, "n1", BEGAN_AT + 8.5)
    assert accounts(fault) == (3, pytest.approx(3.0), pytest.approx(11.5))
    assert fault.recovery == "attempt 2 went on from step 5 with 1 rank on n1"
    assert (history.useful_steps, history.all_steps) == (10, 13)
    assert history.all_s == pytest.approx(20.0 + 5.5)
    assert history.useful_s == pytest.approx(11.0)
    assert history.step_goodput == 10 / 13


def test_the_evaluation_and_the_save_of_the_step_that_counts_are_not_lost(recording):
    recording.attempt(1, started(1, 1), steps(1, 5), evaluated(5), saved(5), step(6), evaluated(6))
    recording.attempt(2, started(2, 6), AttemptEnded(5, "finished", "done"), at=11.0)
    (fault,) = recording.history().faults
    assert accounts(fault) == (1, pytest.approx(3.0), pytest.approx(0.5))


def test_a_torn_line_and_lines_that_are_missing_change_no_count(recording):
    torn = to_line(Stamped(BEGAN_AT + 9, 7009.0, step(8)))[:40]
    recording.attempt(1, started(1, 1), steps(1, 3), 2.0, steps(6, 7), torn=torn)
    recording.attempt(2, started(2, 6), steps(6, 9), AttemptEnded(9, "finished", "x"), at=9.0)
    history = recording.history()
    assert [fault.lost_steps for fault in history.faults] == [2]
    assert (history.useful_steps, history.all_steps) == (9, 11)


def test_a_checkpoint_of_a_step_whose_line_was_lost_still_counts(recording):
    recording.attempt(1, started(1, 1), steps(1, 4))
    recording.attempt(2, started(2, 6), steps(6, 9), AttemptEnded(9, "finished", "x"), at=9.0)
    history = recording.history()
    assert history.faults[0].lost_steps == 0
    assert (history.useful_steps, history.all_steps) == (9, 9)


def test_a_lost_rank_is_named_by_whoever_noticed(recording):
    lost = AttemptEnded(7, "failed", "silent for 9 s\n  it stood at\n    x", "lost-rank", 1, "n2")
    recording.attempt(1, started(1, 1, ranks=2), steps(1, 7), 9.0, lost, rank=0)
    recording.attempt(1, started(1, 1, rank=1, ranks=2, host="n2"), steps(1, 7), rank=1)
    recording.attempt(2, started(2, 5), steps(5, 9), AttemptEnded(9, "finished", "x"), at=30.0)
    (fault,) = recording.history().faults
    assert (fault.kind, fault.rank, fault.host) == ("failed", 1, "n2")
    assert fault.what == "silent for 9 s"
    assert fault.at == BEGAN_AT + 16.0
    # Waiting for the lost rank is time in which nothing was done.
    assert accounts(fault) == (3, pytest.approx(3.0), pytest.approx(23.0))
    assert fault.recovery == "attempt 2 went on from step 4 with 1 rank instead of 2 on n1"


def test_of_several_failures_the_first_counts_on_one_clock(recording):
    """The second host's clock is 100 s ahead, so that its failure only looks like the later one."""
    recording.attempt(
        *(1, started(1, 1, ranks=2), steps(1, 3), 1.0),
        AttemptEnded(3, "failed", "RuntimeError: broken pipe"),
    )
    recording.attempt(
        *(1, started(1, 1, rank=1, ranks=2, host="n2"), ClockOffset("n2", 100.0, 0.0, 0.001)),
        *(steps(1, 3), AttemptEnded(3, "failed", "RuntimeError: the device is gone")),
        rank=1,
        at=100.0,
    )
    (fault,) = recording.history().faults
    assert (fault.rank, fault.host) == (1, "n2")
    assert fault.what == "RuntimeError: the device is gone"
    assert fault.at == BEGAN_AT + 3.0


def test_a_preempted_attempt_has_saved_and_costs_only_the_pause(recording):
    recording.attempt(
        *(1, started(1, 1, ranks=2), steps(1, 7), saved(7)),
        AttemptEnded(7, "preempted", "AWS will stop this host at noon", "notice", 1, "n2"),
    )
    recording.attempt(
        2, started(2, 8, ranks=2), steps(8, 9), AttemptEnded(9, "finished", "x"), at=17.5
    )
    (fault,) = recording.history().faults
    assert (fault.kind, fault.rank, fault.host) == ("preempted", 1, "n2")
    assert accounts(fault) == (0, 0.0, pytest.approx(10.0))


def test_all_ranks_that_were_asked_to_stop_are_none_alone(recording):
    asked = AttemptEnded(7, "preempted", "asked to stop by SIGTERM", "signal")
    for rank in (0, 1):
        start = started(1, 1, rank=rank, ranks=2, host=f"n{rank}")
        recording.attempt(1, start, steps(1, 7), saved(7), asked, rank=rank)
    (fault,) = recording.history().faults
    assert (fault.rank, fault.host, fault.recovery) == (None, "", "")


def test_a_run_that_has_not_gone_on_will_lose_what_it_has_not_saved(recording):
    recording.attempt(1, started(1, 1), steps(1, 5), saved(5), steps(6, 9))
    history = recording.history()
    (fault,) = history.faults
    assert (fault.lost_steps, fault.recovery) == (4, "")
    assert (history.useful_steps, history.all_steps) == (5, 9)


def test_a_run_that_is_running_is_no_fault(recording):
    recording.attempt(1, started(1, 1), steps(1, 5), saved(5), steps(6, 9))
    history = recording.history(read_at=BEGAN_AT + 30.0)
    assert (history.faults, history.useful_steps) == ((), 9)


def test_a_torn_checkpoint_costs_what_an_attempt_before_had_done(recording):
    """The second attempt goes on from 10, and the third finds only 5 whole."""
    recording.attempt(1, started(1, 1), steps(1, 10), saved(10), step(11))
    recording.attempt(2, started(2, 11), steps(11, 12), at=20.0)
    recording.attempt(3, started(3, 6), steps(6, 14), AttemptEnded(14, "finished", "x"), at=30.0)
    history = recording.history()
    assert [fault.lost_steps for fault in history.faults] == [1, 7]
    assert history.faults[1].lost_s == pytest.approx(7.5)  # with the save that came to nothing
    assert (history.useful_steps, history.all_steps) == (14, 22)


def test_an_attempt_that_ended_well_but_whose_checkpoint_was_not_whole(recording):
    recording.attempt(1, started(1, 1), steps(1, 10), saved(10), AttemptEnded(10, "finished", "x"))
    recording.attempt(2, started(2, 6), steps(6, 12), AttemptEnded(12, "finished", "x"), at=1000.0)
    history = recording.history()
    (fault,) = history.faults
    assert (fault.kind, fault.lost_steps, fault.down_s) == ("not whole", 5, 0.0)
    assert history.all_s == pytest.approx(10.5 + 7.0)  # the pause was nobody's fault


def test_a_pause_after_a_good_end_costs_nothing(recording):
    recording.attempt(1, started(1, 1), steps(1, 5), AttemptEnded(5, "finished", "x"))
    recording.attempt(2, started(2, 6), steps(6, 8), AttemptEnded(8, "finished", "x"), at=9000.0)
    history = recording.history()
    assert history.faults == ()
    assert history.useful_s == history.all_s == pytest.approx(8.0)


def test_a_rollback_inside_an_attempt_is_a_fault_of_its_own(recording):
    exploded = Incident(9, "rollback", "the loss has exploded", rollback_step=5)
    skipped = Incident(9, "update-skipped", "the gradients are not finite")
    recording.attempt(
        *(1, started(1, 1), steps(1, 5), saved(5), steps(6, 9)),
        *(exploded, skipped, 4.0, steps(6, 8), AttemptEnded(8, "finished", "x")),
    )
    history = recording.history()
    (fault,) = history.faults
    assert (fault.kind, fault.what, fault.step) == ("rolled back", exploded.message, 9)
    assert accounts(fault) == (4, pytest.approx(4.0), pytest.approx(4.0))
    assert fault.recovery == "the same attempt went on from step 5"
    assert (history.useful_steps, history.all_steps) == (8, 12)
    assert history.all_s == pytest.approx(16.5)
    assert history.useful_s == pytest.approx(8.5)


def test_steps_that_go_back_without_an_incident_are_a_rollback_too(recording):
    recording.attempt(
        *(1, started(1, 1), steps(1, 9), Incident(9, "other", "the disk is full")),
        *(steps(6, 8), AttemptEnded(8, "finished", "x")),
    )
    (fault,) = recording.history().faults
    assert (fault.kind, fault.what) == ("rolled back", "the attempt went back by itself")


def test_of_two_rollbacks_each_has_its_own_incident(recording):
    first = Incident(9, "rollback", "once", rollback_step=5)
    second = Incident(8, "rollback", "twice", rollback_step=5)
    recording.attempt(
        *(1, started(1, 1), steps(1, 5), saved(5), steps(6, 9), first, steps(6, 8), second),
        *(steps(6, 9), AttemptEnded(9, "finished", "x")),
    )
    history = recording.history()
    assert [(fault.what, fault.lost_steps) for fault in history.faults] == [
        ("once", 4),
        ("twice", 3),
    ]
    assert (history.useful_steps, history.all_steps) == (9, 16)


def test_a_save_that_the_attempt_has_gone_back_behind_saves_nothing(recording):
    recording.attempt(
        *(1, started(1, 1), steps(1, 5), saved(5), steps(6, 8), saved(8), step(9), steps(6, 7))
    )
    rollback, broken_off = recording.history().faults
    assert (rollback.kind, rollback.lost_steps) == ("rolled back", 4)
    assert (broken_off.kind, broken_off.lost_steps) == ("broken off", 2)


def test_a_rollback_may_go_back_behind_the_start_of_its_attempt(recording):
    recording.attempt(1, started(1, 1), steps(1, 10), saved(10), AttemptEnded(10, "preempted", "x"))
    recording.attempt(
        *(2, started(2, 11), 3.0, steps(11, 14), steps(6, 15), AttemptEnded(15, "finished", "x")),
        at=20.0,
    )
    preempted, rollback = recording.history().faults
    assert accounts(preempted) == (0, 0.0, pytest.approx(9.5))
    # Steps 6 to 14, the save of 10 and the second start.
    assert accounts(rollback) == (9, pytest.approx(9 + 0.5 + 3.0), 0.0)


def test_killed_before_the_first_checkpoint_a_run_starts_over(recording):
    recording.attempt(1, started(1, 1), steps(1, 4))
    recording.attempt(2, started(2, 1), steps(1, 9), AttemptEnded(9, "finished", "x"), at=9.0)
    history = recording.history()
    assert history.faults[0].recovery == "attempt 2 started over with 1 rank on n1"
    assert (history.useful_steps, history.all_steps) == (9, 13)


def test_of_a_lost_first_host_the_other_ranks_still_tell(recording):
    """Rank 0's file went with its host; only rank 1's is left."""
    recording.attempt(1, started(1, 1, rank=1, ranks=2, host="n2"), steps(1, 6), rank=1)
    recording.attempt(
        2, started(2, 4, host="n2"), steps(4, 8), AttemptEnded(8, "finished", "x"), at=9.0
    )
    history = recording.history()
    (fault,) = history.faults
    assert (fault.rank, fault.host, fault.lost_steps) == (None, "n2", 3)
    assert history.useful_steps == 8


def test_a_rank_whose_file_holds_more_says_how_far_the_attempt_was(recording):
    recording.attempt(1, started(1, 1, ranks=2), steps(1, 4), rank=0)
    recording.attempt(1, started(1, 1, rank=1, ranks=2), steps(1, 6), rank=1)
    recording.attempt(2, started(2, 4), steps(4, 8), AttemptEnded(8, "finished", "x"), at=9.0)
    (fault,) = recording.history().faults
    assert (fault.step, fault.lost_steps) == (6, 3)


def test_many_attempts_add_up(recording):
    """Each gets ten steps further than its checkpoint and loses three of them."""
    for number in range(1, 8):
        first = 7 * (number - 1) + 1
        recording.attempt(
            *(number, started(number, first), steps(first, first + 6), saved(first + 6)),
            steps(first + 7, first + 9),
            at=20.0 * (number - 1),
        )
    history = recording.history()
    assert [fault.lost_steps for fault in history.faults] == [3] * 7
    assert (history.useful_steps, history.all_steps) == (49, 70)
    assert history.step_goodput == pytest.approx(0.7)
    assert history.all_s == pytest.approx(history.useful_s + history.cost_s)
