import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.forecast.overlap import Message, Timeline

TIMES = st.floats(0.0, 100.0)


def test_a_message_that_fits_beside_computing_is_not_waited_for():
    timeline = Timeline()
    timeline.send(Message(2.0))
    timeline.compute(3.0)
    timeline.wait()

    assert (timeline.now_s, timeline.exposed_s, timeline.slowed_s) == (3.0, 0.0, 0.0)


def test_what_is_left_after_computing_is_exposed():
    timeline = Timeline()
    timeline.send(Message(5.0))
    timeline.compute(3.0)
    timeline.wait()

    assert (timeline.now_s, timeline.exposed_s) == (5.0, 2.0)


def test_messages_travel_one_after_the_other():
    timeline = Timeline()
    first, second = timeline.send(Message(1.0)), timeline.send(Message(2.0))
    timeline.wait(first)
    assert timeline.now_s == 1.0
    timeline.compute(0.5)
    timeline.wait(second)
    assert timeline.now_s == 3.0


def test_a_message_that_needs_the_cores_slows_computing_down():
    """A fifth of the cores for 2 s: computing takes 0.4 s longer."""
    timeline = Timeline()
    timeline.send(Message(2.0, processor_s=0.4))
    timeline.compute(3.0)

    assert timeline.now_s == pytest.approx(3.4)
    assert timeline.slowed_s == pytest.approx(0.4)


def test_a_message_that_wants_all_cores_shares_them_evenly():
    """Both get a half: after 2 s, 1 s of each is done, and the rest of computing is alone."""
    timeline = Timeline()
    timeline.send(Message(1.0, processor_s=1.0))
    timeline.compute(3.0)

    assert timeline.now_s == pytest.approx(4.0)


@given(st.lists(st.tuples(TIMES, TIMES, st.floats(0, 1)), max_size=8))
def test_waiting_never_exceeds_sending_and_no_time_is_lost(events):
    timeline, computed, sent, busy = Timeline(), 0.0, 0.0, 0.0
    for compute_s, alone_s, share in events:
        timeline.compute(compute_s)
        timeline.send(Message(alone_s, share * alone_s))
        computed, sent, busy = computed + compute_s, sent + alone_s, busy + share * alone_s
    timeline.wait()

    assert timeline.exposed_s <= sent * (1 + 1e-6) + 1e-9
    assert timeline.slowed_s <= busy * (1 + 1e-6) + 1e-6
    parts = computed + timeline.exposed_s + timeline.slowed_s
    assert timeline.now_s == pytest.approx(parts, rel=1e-6, abs=1e-6)
