import math

import pytest
from unit.report.fake_run import started, step
from unit.watch.growing_run import MONOTONIC_AHEAD, NOW, stamped

from dragoman.telemetry.events import ClockOffset, Incident, Stamped
from dragoman.watch.live_rank import BIN_S, LiveRank, is_possible, rank_now, recent_steps


def rank_of(events):
    rank = LiveRank(MONOTONIC_AHEAD)
    for at, event in events:
        rank.note(stamped(at, event), NOW + at)
    return rank


def test_a_bin_holds_the_steps_that_end_in_it():
    rank = rank_of([(0.1, step(1, 0.5)), (BIN_S - 0.1, step(2, 1.5)), (BIN_S + 0.1, step(3, 1.0))])
    assert [(each.steps, each.seconds, each.step) for each in rank.bins] == [(2, 2.0, 2), (1, 1, 3)]
    assert recent_steps(list(rank.bins)).step_s == [1.0, 1.0]


def test_only_what_comes_again_and_again_counts_for_the_longest_gap():
    rank = rank_of([(0.0, step(1)), (3.0, step(2)), (20.0, Incident(2, "update-skipped", "NaN"))])
    assert rank.longest_gap_s == pytest.approx(3.0)
    assert rank.last_at == NOW + 20.0


def test_silence_is_measured_from_what_was_seen_to_grow():
    rank = rank_of([(0.0, step(1))])
    rank.read_at = NOW - 5.0
    assert rank.silent_s(NOW + 10.0) == pytest.approx(15.0), "no event is younger than its reading"
    rank.seen_at = NOW + 8.0
    assert rank.silent_s(NOW + 10.0) == pytest.approx(2.0)
    assert rank.silent_s(NOW) == 0.0


def test_events_are_placed_on_the_clock_of_rank_0():
    rank = LiveRank(MONOTONIC_AHEAD)
    assert rank.place(1, [Stamped(0.0, 10.0, step(1))], None) == [MONOTONIC_AHEAD + 10.0]
    rank.note_clock(Stamped(0.0, 9.0, ClockOffset("host-1", 0.0, -50.0, 0.001)))
    [placed] = rank.place(1, [Stamped(0.0, 10.0, step(1))], MONOTONIC_AHEAD)
    assert placed == pytest.approx(MONOTONIC_AHEAD + 60.0)


def test_a_comparison_of_clocks_that_comes_late_is_not_taken():
    rank = LiveRank(0.0)
    for at in (9.0, 5.0):
        rank.note_clock(Stamped(0.0, at, ClockOffset("host-1", 0.0, -at, 0.001)))
    assert [at for at, _ in rank.clocks] == [9.0]


def test_now_has_the_mean_of_the_last_steps():
    rank = rank_of([(0.0, step(1, 1.0)), (2.0, step(2, 3.0))])
    rank.start = started(rank=1, ranks=2)
    now = rank_now(1, rank, "node2", NOW + 2.5)
    assert (now.step, now.step_s, now.host) == (2, 2.0, "node2")
    assert math.fsum(now.parts_s.values()) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "damaged",
    [
        Stamped(-1.0, 1.0, step(1)),
        Stamped(1.0, 1e12, step(1)),
        Stamped(1.0, math.nan, step(1)),
        Stamped(1.0, 1.0, step(0)),
        Stamped(1.0, 1.0, step(1, -0.5)),
    ],
)
def test_damaged_lines_are_not_possible(damaged):
    assert not is_possible(damaged)
    assert is_possible(stamped(0.0, step(1)))
