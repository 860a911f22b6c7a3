import pytest
import torch

from dragoman.distributed.group import Group
from dragoman.sync.islands import Islands
from dragoman.training import local_state
from dragoman.training.local_state import (
    MOMENTUM,
    collect,
    islands_in,
    keeper_of_each,
    local_shapes,
    named,
    own_tensors_in,
    unnamed,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("hosts", "keeps", "keepers"),
    [
        (["a", "a"], [True, False], [0, 0]),
        (["a", "b"], [True, True], [0, 1]),
        (["a", "b", "b"], [True, True, False], [0, 1, 1]),
        (["a", "b", "b"], [True, False, False], [0, 0, 0]),
    ],
    ids=["one host", "a folder each", "two on a host", "a folder in common"],
)
def test_moments_are_kept_on_their_own_host_if_it_keeps_any(hosts, keeps, keepers):
    assert keeper_of_each(hosts, keeps) == keepers


def test_a_keeper_collects_the_moments_of_the_islands_of_its_host(monkeypatch):
    """Of three islands the first two are here; the third keeps its own."""
    islands, keepers = Islands(of_rank=(0, 1, 2), own=0), [0, 0, 2]

    def receive(tensor, source):
        tensor.fill_(float(source))

    sent = []
    monkeypatch.setattr(local_state.dist, "recv", receive)
    monkeypatch.setattr(local_state.dist, "send", lambda tensor, to: sent.append((to, tensor)))
    moments = {"w|exp_avg": torch.zeros(2)}
    found = collect(moments, islands, keepers, Group(0, 3, 0, CPU))
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "w|exp_avg@0": [0.0, 0.0],
        "w|exp_avg@1": [1.0, 1.0],
    }
    assert collect(moments, islands, keepers, Group(1, 3, 1, CPU)) == {}
    assert [to for to, _ in sent] == [0]
    assert [*collect(moments, islands, keepers, Group(2, 3, 0, CPU))] == ["w|exp_avg@2"]


def saved(*held):
    own = {f"w|exp_avg@{island}": torch.tensor(float(island)) for island in held}
    return {**own, **named({"w": torch.tensor(0.5)}, MOMENTUM)}


def test_an_island_finds_its_own_tensors_again():
    assert own_tensors_in(saved(0, 1), island=1) == {"w|exp_avg": torch.tensor(1.0)}
    assert unnamed(saved(0, 1), MOMENTUM) == {"w": torch.tensor(0.5)}
    assert islands_in(saved(3, 12)) == [3, 12]


def test_an_island_without_tensors_takes_those_of_another():
    taken = [own_tensors_in(saved(4, 7), island)["w|exp_avg"].item() for island in (0, 1, 7)]
    assert taken == [4.0, 7.0, 7.0]


def test_before_the_first_update_nothing_is_held():
    assert own_tensors_in({}, island=0) == {}


def test_the_shapes_are_those_of_what_is_held():
    moments = {"w|exp_avg": (2, 3), "w|step": ()}
    shapes = local_shapes({"w": (2, 3)}, moments, ["w|exp_avg@0", "w|exp_avg@2"])
    assert shapes == {
        "w|outer_momentum": (2, 3),
        "w|exp_avg@0": (2, 3),
        "w|exp_avg@2": (2, 3),
        "w|step@0": (),
        "w|step@2": (),
    }


def test_what_was_on_its_way_has_to_be_there_as_it_departed_and_as_its_mean():
    names = ["a|exp_avg@1", "a|outer_mean"]
    shapes = local_shapes({"a": (2,), "b": (3,)}, {"a|exp_avg": (2,), "b|exp_avg": (3,)}, names)
    assert shapes == {
        "a|outer_momentum": (2,),
        "b|outer_momentum": (3,),
        "a|outer_mean": (2,),
        "a|exp_avg@1": (2,),
        "b|exp_avg@1": (3,),
        "a|outer_departed@1": (2,),
    }
