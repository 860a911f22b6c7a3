import pytest

from dragoman.sync.window import Window


def test_every_step_is_a_window_where_gradients_are_summed_in_every_step():
    window = Window(steps=1)
    assert all(window.ends_at(step) for step in range(1, 10))
    assert [step for step in range(1, 13) if window.holds_multiple(step, 5)] == [5, 10]
    assert not window.holds_multiple(1, 2)


def test_windows_end_at_steps_that_follow_from_their_number_and_at_the_last():
    window = Window(steps=4, last_step=10)
    assert [step for step in range(1, 13) if window.ends_at(step)] == [4, 8, 10, 12]


@pytest.mark.parametrize(
    ("every_steps", "due"), [(1, [4, 8, 10]), (3, [4, 8, 10]), (5, [8, 10]), (9, [10]), (11, [])]
)
def test_what_is_due_inside_a_window_is_due_at_its_end(every_steps, due):
    window = Window(steps=4, last_step=10)
    ends = [step for step in range(1, 11) if window.ends_at(step)]
    assert [step for step in ends if window.holds_multiple(step, every_steps)] == due
