from dragoman.telemetry.events import StepDone
from dragoman.training.observer import RankParts, SafeObserver, watch_nothing


class Failing:
    calls = 0

    def after_step(self, *_):
        self.calls += 1
        raise ZeroDivisionError("nothing")

    after_evaluation = after_step


def test_an_observer_that_fails_is_reported_once_and_stops_nothing():
    failing = Failing()
    safe = SafeObserver(failing)
    assert "ZeroDivisionError('nothing')" in safe.after_evaluation(None)
    assert safe.after_step(None, []) is None
    assert failing.calls == 1


def test_without_a_watch_nothing_is_logged(digits_config):
    observer = watch_nothing(digits_config, ["n1"], 0, [])
    assert observer.after_step(None, []) is None
    assert observer.after_evaluation(None) is None


def test_parts_of_an_event_that_are_not_named_took_no_time():
    parts = RankParts.of(
        StepDone(
            *(7, 0.1, 3.0, 500, 1e-3, 1.0, True, 2.0),
            {"data": 0.5, "forward": 1.0, "some part of a later version": 9.0},
            ready_s=1.7,
        )
    )
    assert parts == RankParts(0.5, 1.0, 0.0, None, 0.0, 0.0, 0.0, 0.0, 1.7)
