import bz2
import gzip
import lzma
import os
import resource

import pytest

from dragoman.documents.output import check_output, whole_file
from dragoman.errors import StorageError, UserError


@pytest.mark.parametrize(
    ("name", "expand"),
    [
        ("out.txt", bytes),
        ("out.gz", gzip.decompress),
        ("out.xz", lzma.decompress),
        ("out.bz2", bz2.decompress),
    ],
)
def test_the_file_appears_at_the_end_and_is_whole(tmp_path, name, expand):
    path = tmp_path / "new" / name
    with whole_file(path) as write:
        write("one\n")
        assert not path.exists()
        write("zwölf\n")
    assert expand(path.read_bytes()).decode() == "one\nzwölf\n"
    assert list(path.parent.iterdir()) == [path]


def test_the_same_text_gives_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with whole_file(tmp_path / name) as write:
            write("one\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, UserError, SystemExit])
def test_an_error_leaves_what_was_there(tmp_path, name, error):
    path = tmp_path / name
    path.write_text("old")

    def begin_and_fail():
        with whole_file(path) as write:
            write("new\n" * 100_000)
            raise error

    with pytest.raises(error):
        begin_and_fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
def test_a_full_disk_is_one_error_and_leaves_what_was_there(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))

    def fill():
        with whole_file(path) as write:
            for number in range(100_000):
                write(f"{number * number}\n")

    try:
        with pytest.raises(StorageError, match=name):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_so_does_the_mode(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with whole_file(link) as write:
        write("new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(pipe) as write:
        write("one\n")
        assert os.read(reader, 100) == b"one\n"
    os.close(reader)
    assert pipe.is_fifo()


def test_what_cannot_be_written_is_refused_before(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, error in (
        (tmp_path, UserError),
        (tmp_path / "a.zst", UserError),
        (loop, StorageError),
    ):
        with pytest.raises(error, match=str(path)):
            check_output(path)
    check_output(tmp_path / "new.txt")
