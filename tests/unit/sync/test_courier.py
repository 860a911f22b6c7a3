import threading

import pytest
import torch

from dragoman.sync.courier import Courier


@pytest.fixture
def courier():
    made = Courier(torch.device("cpu"), "test")
    yield made
    made.close()


def test_it_works_in_the_order_given_beside_the_caller(courier):
    done, may_begin = [], threading.Event()

    def first():
        may_begin.wait()
        done.append(1)
        return "first"

    futures = [courier.begin(first), courier.begin(lambda: done.append(2))]
    assert not futures[0].done()
    may_begin.set()
    assert futures[0].wait() == "first"
    futures[1].wait()
    assert done == [1, 2]


def test_an_error_is_raised_where_its_result_is_waited_for_and_the_next_work_is_done(courier):
    def fails():
        raise RuntimeError("connection reset")

    failing, after = courier.begin(fails), courier.begin(lambda: 3)
    with pytest.raises(RuntimeError, match="connection reset"):
        failing.wait()
    assert after.wait() == 3


def test_closing_waits_for_what_is_on_its_way():
    courier, done = Courier(torch.device("cpu"), "test"), []
    courier.begin(lambda: done.append(1))
    assert courier.close()
    assert done == [1]


def test_an_end_does_not_wait_for_what_is_stuck(monkeypatch):
    monkeypatch.setattr("dragoman.sync.courier.END_S", 0.05)
    courier, release = Courier(torch.device("cpu"), "test"), threading.Event()
    courier.begin(release.wait)
    assert not courier.close()
    release.set()
