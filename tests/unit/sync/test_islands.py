import pytest

from dragoman.config import SyncSettings
from dragoman.sync.islands import Islands, island_of_each

HOSTS = ["a", "a", "b", "a"]


@pytest.mark.parametrize(
    ("settings", "islands"),
    [
        (SyncSettings(), (0, 0, 0, 0)),
        (SyncSettings(mode="bf16"), (0, 0, 0, 0)),
        (SyncSettings(mode="local"), (0, 1, 2, 3)),
        (SyncSettings(mode="diloco", group="host"), (0, 0, 1, 0)),
    ],
    ids=["fp32", "bf16", "a rank each", "a host each"],
)
def test_ranks_that_sum_every_gradient_are_one_island(settings, islands):
    assert island_of_each(HOSTS, settings) == islands


def test_an_island_knows_its_ranks_and_its_share_of_the_work():
    islands = Islands(of_rank=(0, 0, 1, 0), own=0)
    assert (islands.count, islands.members, islands.share) == (2, [0, 1, 3], 0.75)
