import logging

import pytest

from dragoman.errors import CorruptFileError, UserError
from dragoman.preparation.stage import Stage
from dragoman.preparation.task import (
    FileRange,
    Given,
    Joined,
    Result,
    StageFile,
    StageRange,
    Task,
    do_there,
    finish,
)


def upper(settings, inputs):
    logging.getLogger("dragoman.preparation").warning("working")
    text = b"".join(value.read() for value in inputs.values()).upper()
    return Result({"is": settings}, {"text": text}, {"beside.bin": text[:1]}, pairs=len(text))


@pytest.fixture
def task(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    stage = Stage(tmp_path / "before")
    stage.finish(4, {}, {"part": b"uvwxyz"})
    inputs = {
        "given": Given(b"1"),
        "all": FileRange(tmp_path / "file"),
        "range": FileRange(tmp_path / "file", 1, 3),
        "stage": Joined([StageRange(stage, 4, "part", 0, 2), StageFile(stage, 4, "part")]),
    }
    return Task(upper, "x", inputs, Stage(tmp_path / "after"), 7)


def test_a_task_reads_its_inputs_and_keeps_its_result(task):
    done = do_there(task, is_written=True)
    assert [logged.text for logged in done.logged] == ["working"]
    assert not task.stage.is_done(7)
    assert (done.result.contents, done.result.files) == ({}, {})
    assert finish(task, done) == 17
    assert task.stage.content(7, "text") == b"1ABCDEFBCUVUVWXYZ"
    assert task.stage.record(7)["is"] == "x"
    assert (task.stage.folder / "beside.bin").read_bytes() == b"1"


def test_a_result_that_travels_back_is_the_same(task):
    done = do_there(task.with_bytes(), is_written=False)
    assert not task.stage.folder.exists()
    assert done.result == task.do()
    finish(task, done)
    assert task.stage.content(7, "text") == b"1ABCDEFBCUVUVWXYZ"


def test_inputs_that_are_gone_or_shorter_are_refused(task, tmp_path):
    with pytest.raises(UserError, match="nowhere: cannot be read"):
        FileRange(tmp_path / "nowhere").read()
    with pytest.raises(UserError, match="file: changed while it was read"):
        FileRange(tmp_path / "file", 3, 9).read()
    with pytest.raises(CorruptFileError, match=r"00004\.part: is shorter"):
        StageRange(Stage(tmp_path / "before"), 4, "part", 3, 9).read()
    with pytest.raises(CorruptFileError, match=r"00005\.part: is shorter"):
        StageRange(Stage(tmp_path / "before"), 5, "part", 3, 9).read()
