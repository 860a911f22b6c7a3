import pytest

from dragoman.diagnosis.speed.intervals import interval_for


@pytest.mark.parametrize(
    ("each_s", "steps"), [(9.0, 900), (0.001, 1), (12.34, 1300), (0.057, 6), (0.0, 1)]
)
def test_interruptions_take_their_share_of_the_time(each_s, steps):
    assert interval_for(each_s, step_s=1.0, share=0.01) == steps


def test_steps_without_time_have_no_interval():
    assert interval_for(9.0, step_s=0.0, share=0.01) == 1
