import torch

from dragoman.sync import averaging
from dragoman.sync.averaging import average_differences
from dragoman.sync.islands import Islands


def test_one_island_keeps_its_difference():
    difference = torch.tensor([1.0, -2.0])
    average_differences([difference], Islands(of_rank=(0, 0), own=0))
    assert difference.tolist() == [1.0, -2.0]


def test_islands_count_by_their_share_of_the_ranks(monkeypatch):
    """Three ranks of four on this island have moved by 1, the fourth by 5."""
    islands = Islands(of_rank=(0, 0, 0, 1), own=0)
    done = []

    class Work:
        def wait(self):
            done.append(True)

    def all_reduce(tensor, group, async_op):
        tensor += 5.0 / 4
        return Work()

    monkeypatch.setattr(averaging.dist, "all_reduce", all_reduce)
    difference = torch.tensor([1.0])
    average_differences([difference], islands)
    assert (difference.tolist(), done) == ([2.0], [True])
