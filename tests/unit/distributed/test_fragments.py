import pytest

from dragoman.config import SyncSettings
from dragoman.distributed.fragments import FragmentSchedule, cut


def timetable(schedule, steps):
    return [(schedule.departing(step), schedule.arriving(step)) for step in range(1, steps + 1)]


def test_one_fragment_without_delay_is_a_burst_at_the_end_of_each_window():
    quiet, burst = ([], []), ([0], [0])
    assert timetable(FragmentSchedule(window_steps=3), 6) == [quiet, quiet, burst] * 2


def test_fragments_set_out_at_equal_distances_and_arrive_after_the_delay():
    schedule = FragmentSchedule(window_steps=8, fragments=4, delay=2)
    departures = [step for step in range(1, 17) if schedule.departing(step)]
    assert departures == [2, 4, 6, 8, 10, 12, 14, 16]
    assert [schedule.departing(step) for step in departures[:4]] == [[0], [1], [2], [3]]
    assert schedule.arriving(2) == []
    assert [schedule.arriving(step) for step in (4, 6, 8, 10)] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("window_steps", [2, 5, 8, 12, 30])
@pytest.mark.parametrize("fragments", [1, 2, 3, 6])
@pytest.mark.parametrize("delay", [0, 1, 4])
def test_every_fragment_travels_once_in_every_window(window_steps, fragments, delay):
    if fragments > window_steps or delay >= window_steps:
        return
    schedule = FragmentSchedule(window_steps, fragments, delay)
    begin = 3 * window_steps
    window = range(begin + 1, begin + window_steps + 1)
    for times in (schedule.departing, schedule.arriving):
        assert sorted(f for step in window for f in times(step)) == [*range(fragments)]
    sent = [schedule.share_sent(step) for step in window]
    for fragment in range(fragments):
        assert sum(each.get(fragment, 0.0) for each in sent) == pytest.approx(1)


def test_nothing_is_sent_before_the_first_departure():
    schedule = FragmentSchedule(window_steps=8, fragments=2, delay=4)
    assert [bool(schedule.share_sent(step)) for step in range(1, 10)] == [False] * 4 + [True] * 5


@pytest.mark.parametrize(("window_steps", "fragments", "delay"), [(8, 4, 2), (7, 7, 6), (4, 1, 0)])
def test_what_has_departed_is_sent_by_the_last_step(window_steps, fragments, delay):
    schedule = FragmentSchedule(window_steps, fragments, delay)
    for last in range(1, 30):
        departed = sum(len(schedule.departing(step)) for step in range(1, last))
        sent = sum(sum(schedule.share_sent(step).values()) for step in range(1, last))
        # Without a delay, a fragment is sent in the step after which it departs.
        assert sent + sum(schedule.share_left(last).values()) == pytest.approx(departed)


def test_it_follows_from_the_settings():
    settings = SyncSettings(mode="local", local_steps=6, fragments=3)
    assert FragmentSchedule.of(settings) == FragmentSchedule(6, 3, 2)


def test_the_cut_keeps_neighbors_together_and_all_tensors():
    assert cut([1, 1, 1, 1], 2) == [[0, 1], [2, 3]]
    assert cut([6, 1, 1, 1, 1, 2], 2) == [[0], [1, 2, 3, 4, 5]]
    assert cut([5], 3) == [[], [0], []]
    assert cut([], 2) == [[], []]
    sizes = [7, 1, 3, 3, 9, 2, 2, 8]
    assert [place for fragment in cut(sizes, 3) for place in fragment] == [*range(8)]
