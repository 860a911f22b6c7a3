import pytest
from unit.checkpoints.saving import damage, save

from dragoman.checkpoints.run_id import known_id, run_id
from dragoman.errors import CorruptFileError
from dragoman.rundir import RunDir

ID = "ab12" * 8


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_the_id_of_a_claimed_run_is_in_its_file(run):
    assert known_id(run) == "", "nobody has claimed it"
    run.id.write_text(f"{ID}\n")
    assert run_id(run) == known_id(run) == ID


@pytest.mark.parametrize("content", [b"", b"../../up", b"\xff", b"a" * 65, b"AB12" * 8])
def test_a_file_that_holds_no_id_is_refused(run, content):
    run.id.write_bytes(content)
    with pytest.raises(CorruptFileError, match=str(run.id)):
        known_id(run)


def test_an_id_that_was_lost_is_the_one_that_the_checkpoints_agree_on(run):
    for step in (5, 10):
        save(run.checkpoints, step, owner={"id": ID})
    save(run.checkpoints, 15)  # by a version that knew of no ids
    damage(save(run.checkpoints, 20, owner={"id": "cd34" * 8}), "manifest torn")
    assert known_id(run) == ID
    save(run.checkpoints, 25, owner={"id": "cd34" * 8})
    assert known_id(run) == "", "two runs have saved here"
