import pytest
import torch

from dragoman.distributed.group import Group
from dragoman.sync import link
from dragoman.sync.link import LEAST_S, measure_link, time_all_to_all

TWO = Group(0, 2, 0, torch.device("cpu"))


@pytest.fixture
def sizes(monkeypatch):
    """Elements of each all-reduce over a link of 12.5 MB/s and 1 ms."""
    seen = []

    def seconds(tensor, group, exchange=None):
        seen.append(tensor.numel())
        return 0.001 + 4 * tensor.numel() / 12.5e6

    monkeypatch.setattr(link, "_seconds", seconds)
    return seen


def test_it_sends_until_a_transfer_takes_a_second(sizes):
    found = measure_link(TWO, ranks_on_host=1, most_elements=10**9)
    assert found.bytes_per_s == pytest.approx(12.5e6, rel=0.01)
    assert found.latency_s == pytest.approx(0.001, rel=0.01)
    assert 4 * sizes[-1] / 12.5e6 >= LEAST_S
    assert sum(sizes) < 2 * sizes[-1]


def test_it_never_sends_more_than_the_gradients(sizes):
    found = measure_link(TWO, ranks_on_host=1, most_elements=100_000)
    assert max(sizes) == 100_000
    assert found.bytes_per_s == pytest.approx(12.5e6, rel=0.05)


def test_a_model_smaller_than_the_first_transfer(sizes):
    measure_link(TWO, ranks_on_host=1, most_elements=50)
    assert max(sizes) == 50


def test_everyone_gets_a_slice_from_everyone(sizes):
    three = Group(0, 3, 0, torch.device("cpu"))
    assert len(time_all_to_all(three, 100, repetitions=2)) == 2
    assert sizes == [102, 102]
