from dragoman.training.observer import SafeObserver


class Clumsy:
    looks = 0

    def after_step(self, *_):
        self.looks += 1
        raise ZeroDivisionError("nothing")

    after_evaluation = after_step


def test_an_observer_that_fails_says_so_once_and_stops_nothing():
    clumsy = Clumsy()
    careful = SafeObserver(clumsy)
    assert "cannot be judged any more (ZeroDivisionError('nothing'))" in careful.after_evaluation(
        None
    )
    assert careful.after_step(None, []) is None
    assert clumsy.looks == 1
