import sys

import pytest
from processes import dragoman, sentence

from dragoman.cli.prepare import _on_dask, _share
from dragoman.errors import UserError
from dragoman.preparation import Share

pytestmark = pytest.mark.timeout(180)


def test_parts_and_join_work_from_the_command_line(digits, tmp_path):
    for part in ("2/2", "1/2"):
        assert dragoman("prepare", digits, "--part", part).returncode == 0
    joined = dragoman("prepare", digits, "--join", "--explain", 1)
    assert joined.returncode == 0, joined.stderr
    assert "train: 800 of 800 pairs" in joined.stdout
    both = dragoman("prepare", digits, "--part", "1/2", "--join")
    assert "--part" in sentence(both, 2)


def test_parts_are_counted_from_one():
    assert _share("1/8") == Share(0, 8)
    assert _share("8/8") == Share(7, 8)


@pytest.mark.parametrize("wrong", ["3/2", "0/2", "2", "a/b", "", "1/2/3", "-1/2"])
def test_what_is_no_part_is_named(wrong):
    with pytest.raises(UserError, match=rf"--part {wrong}"):
        _share(wrong)


@pytest.mark.parametrize("given", ["tcp://head:8786", "ssh:gpu1,gpu2"])
def test_without_dask_there_is_a_command_that_installs_it(monkeypatch, given):
    monkeypatch.delitem(sys.modules, "dragoman.preparation.dask_workers", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"pip install .*\[dask\]"):
        _on_dask(given)
