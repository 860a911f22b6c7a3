import re

import pytest
from unit.checkpoints.saving import damage, save

from dragoman.checkpoints.finding import (
    find_checkpoint,
    find_equal,
    is_foreign,
    newest_whole,
    verify,
    whole_steps,
)
from dragoman.checkpoints.names import point_to
from dragoman.errors import CorruptFileError, RunError, UserError


def test_the_same_state_has_the_same_bytes_wherever_it_is_saved(tmp_path):
    one, other = save(tmp_path / "a", 5), save(tmp_path / "b", 5)
    assert one.manifest_sha256() == other.manifest_sha256() != ""
    assert find_equal([tmp_path / "b"], 5, one.manifest_sha256()) == other
    assert find_equal([tmp_path / "b"], 6, one.manifest_sha256()) is None
    assert find_equal([tmp_path / "b"], 7, "") is None


def test_links_name_a_checkpoint_and_are_verified_when_followed(tmp_path):
    for step in (5, 10, 15):
        save(tmp_path, step)
    point_to(tmp_path, "best", "step-00000005")
    point_to(tmp_path, "best", "step-00000010")
    point_to(tmp_path, "latest", "step-00000015")
    assert find_checkpoint(tmp_path, "best").step == 10
    assert find_checkpoint(tmp_path, "latest").step == 15
    assert find_checkpoint(tmp_path, "5").step == 5
    damage(find_checkpoint(tmp_path, "best"), "bit flipped")
    with pytest.raises(CorruptFileError, match=r"step-00000010/model\.safetensors"):
        find_checkpoint(tmp_path, "best")


def test_a_checkpoint_that_is_not_there_is_explained(tmp_path):
    with pytest.raises(UserError, match="train"):
        find_checkpoint(tmp_path, "best")
    save(tmp_path, 5)
    with pytest.raises(UserError, match=r"step 7.* 5$"):
        find_checkpoint(tmp_path, "7")
    with pytest.raises(UserError, match=r"newest.*best, latest"):
        find_checkpoint(tmp_path, "newest")


@pytest.mark.parametrize("link", ["best", "latest"])
@pytest.mark.parametrize("target", ["step-00000010", "best", "latest", "../gone/step-00000005"])
def test_a_link_that_leads_nowhere_is_not_taken_for_the_newest(tmp_path, link, target):
    save(tmp_path, 5)
    for name in ("best", "latest"):
        point_to(tmp_path, name, target)
    with pytest.raises(UserError, match=rf"{link} .*{re.escape(target)}.*--checkpoint.* 5$"):
        find_checkpoint(tmp_path, link)


def test_when_none_is_whole_the_run_does_not_quietly_start_over(tmp_path):
    damage(save(tmp_path, 5), "truncated")
    with pytest.raises(RunError, match=f"{tmp_path}.* 1 checkpoint"):
        newest_whole(tmp_path)
    assert newest_whole(tmp_path / "empty") is None


def test_all_that_are_whole_are_listed_newest_first(tmp_path):
    for step in (5, 10, 15):
        save(tmp_path, step)
    damage(find_checkpoint(tmp_path, "10"), "truncated")
    assert whole_steps([tmp_path]) == [15, 5]

    def check(checkpoint):
        if checkpoint.step == 15:
            raise CorruptFileError("of no use")

    assert whole_steps([tmp_path], check=check) == [5]


def test_a_checkpoint_is_foreign_only_where_its_manifest_says_so(tmp_path):
    theirs = save(tmp_path, 5, owner={"id": "b2"})
    nobodys = save(tmp_path, 10)
    assert is_foreign(theirs, {"id": "a1"})
    assert not is_foreign(theirs, {"id": "b2"})
    assert not is_foreign(nobodys, {"id": "a1"})
    with pytest.raises(CorruptFileError, match=r"'b2'.*'a1'"):
        verify(theirs, {"id": "a1"})
    damage(theirs, "manifest torn")
    assert not is_foreign(theirs, {"id": "a1"}), "nobody can tell whose it is"
