import dataclasses

import pytest
import torch

from dragoman.distributed.consensus import all_or_none, odd_ranks, raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import FailedElsewhereError, NamedRank, RunError, StorageError, UserError

ALONE = Group(0, 1, 0, torch.device("cpu"))


@dataclasses.dataclass(frozen=True)
class Gathered(Group):
    """One of several ranks, which knows what the others answer."""

    others: tuple = ()

    def gather(self, message):
        return [message, *self.others]


def group_with(*others):
    return Gathered(0, 1 + len(others), 0, torch.device("cpu"), others=others)


def fail():
    raise UserError("no such file")


def test_odd_ranks_need_a_majority():
    assert odd_ranks([1, 1, 1]) == []
    assert odd_ranks([1, 2, 1]) == [1]
    assert odd_ranks([1, 2]) is None
    assert odd_ranks([1, 2, 2, 1]) is None
    assert odd_ranks([{"a": 1}, {"a": 2}, {"a": 1}]) == [1]


def test_alone_an_error_stays_what_it_is(tmp_path):
    def action():
        raise StorageError(tmp_path, "trying", "no space")

    with pytest.raises(StorageError):
        all_or_none(ALONE, action)
    assert all_or_none(ALONE, lambda: 3) == 3


def test_where_one_rank_fails_all_stop_and_the_error_names_it():
    with pytest.raises(RunError) as found:
        all_or_none(group_with(["n1", "disk full", 1]), lambda: 3)
    assert found.value.culprit == NamedRank(1, "n1")
    assert str(found.value) == "rank 1 on n1: disk full"


def test_where_all_fail_alike_nobody_is_named():
    with pytest.raises(UserError, match=r"^no such file$") as found:
        all_or_none(group_with(["n1", "no such file", 2]), fail)
    assert found.value.culprit is None


def test_only_rank_0_reports_what_all_have_found():
    error = UserError("everyone knows")
    with pytest.raises(UserError, match="everyone knows"):
        raise_on_all_ranks(ALONE, error)
    with pytest.raises(FailedElsewhereError) as found:
        raise_on_all_ranks(Group(1, 2, 1, torch.device("cpu")), error)
    assert found.value.exit_code == UserError.exit_code
