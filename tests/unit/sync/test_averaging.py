import pytest
import torch

from dragoman.sync import averaging
from dragoman.sync.averaging import average_changes
from dragoman.sync.islands import Islands
from dragoman.sync.wire import Average


def test_one_island_keeps_its_change():
    change = torch.tensor([1.0, -2.0])
    mean = average_changes([change], Islands(of_rank=(0, 0), own=0), "4bit")
    assert mean.tensors[0].tolist() == [1.0, -2.0]


def test_nothing_is_sent_for_a_fragment_without_tensors():
    """Also where a host of several ranks is an island, which passes on what it is told."""
    islands = Islands(of_rank=(0, 0, 1), own=0, spread="channel")
    assert average_changes([], islands, "bf16") == ([], [])


@pytest.fixture
def asked(monkeypatch):
    """What `average` was called with; it answers with the other island's change of 5."""
    calls = []

    def average(tensors, kind, weight, process_group):
        calls.append((kind, weight))
        return Average([weight * tensors[0] + (1 - weight) * 5.0], [], [weight, 1 - weight], 0)

    monkeypatch.setattr(averaging, "average", average)
    return calls


def test_islands_count_by_their_share_of_the_ranks(asked):
    """Three ranks of four on this island have moved by 1, the fourth by 5."""
    islands = Islands(of_rank=(0, 0, 0, 1), own=0)
    mean = average_changes([torch.tensor([1.0])], islands, "bf16")
    assert mean.tensors[0].tolist() == [2.0]
    assert asked == [("bf16", 0.75)]


def test_islands_with_values_that_are_not_finite_are_named_and_nothing_is_learned(monkeypatch):
    found = Average(None, [1], [0.5, 0.5], 0)
    monkeypatch.setattr(averaging, "average", lambda *_: found)
    mean = average_changes([torch.tensor([1.0])], Islands(of_rank=(0, 1), own=0), "fp32")
    assert mean == (None, [1])
