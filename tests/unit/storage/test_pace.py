from dragoman.storage.pace import Pace


class Clock:
    def __init__(self):
        self.now = 100.0
        self.pauses = []

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def test_uploads_that_share_a_pace_take_turns():
    clock = Clock()
    pace = Pace(1000, clock, clock.pause)
    assert [pace.take(500) for _ in range(4)] == [0.0, 0.5, 0.5, 0.5]
    assert clock.now == 101.5


def test_time_that_nobody_used_is_not_saved_up():
    clock = Clock()
    pace = Pace(1000, clock, clock.pause)
    pace.take(1000)
    clock.now += 60
    assert pace.take(1000) == 0.0
    assert pace.take(1000) == 1.0


def test_without_a_limit_nobody_waits():
    clock = Clock()
    pace = Pace(0, clock, clock.pause)
    pace.take(1 << 40)
    assert not pace.is_limited
    assert pace.take(1) == 0.0
    assert clock.pauses == []
