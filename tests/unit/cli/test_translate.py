import os
import subprocess

import pytest
from processes import dragoman, sentence

from dragoman.cli.translate import CHARACTERS_AT_ONCE, _batches, _check_output
from dragoman.errors import StorageError, UserError
from dragoman.rundir import RunDir

pytestmark = pytest.mark.timeout(180)


def test_text_in_text_out_in_every_way(trained, tmp_path):
    _, run = trained
    text = tmp_path / "in.txt"
    text.write_text("one two\n\nthree\n")
    by_argument = dragoman("translate", run, "one two", "", "three")
    by_input = dragoman("translate", run, typed="one two\n\nthree\n")
    by_file = dragoman("translate", run, "--input", text, "--output", tmp_path / "out.txt")
    assert by_argument.returncode == by_input.returncode == by_file.returncode == 0
    assert by_argument.stdout == by_input.stdout == (tmp_path / "out.txt").read_text()
    assert len(by_input.stdout.split("\n")) == 4
    assert by_input.stdout.split("\n")[1] == ""

    averaged = dragoman("translate", run, "--average", 2, "one")
    assert "1 checkpoints" in sentence(averaged, 2)
    broken = subprocess.run(
        ["bash", "-c", f"printf 'one\\xff\\n' | {' '.join(by_input.args[:3])} translate {run}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "standard input, line 1: not UTF-8" in sentence(broken, 2)


def test_translations_go_through_links_and_pipes(trained, tmp_path):
    _, run = trained
    text, target, link = (tmp_path / name for name in ("in.txt", "target.txt", "link.txt"))
    text.write_text("one two\n")
    target.write_text("old")
    link.symlink_to(target)
    expected = dragoman("translate", run, "one two").stdout
    assert dragoman("translate", run, "-i", text, "-o", link).returncode == 0
    assert (link.is_symlink(), target.read_text()) == (True, expected)

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert dragoman("translate", run, "-i", text, "-o", pipe).returncode == 0
    assert os.read(reader, 10_000).decode() == expected
    os.close(reader)
    assert pipe.is_fifo()


def test_translations_are_never_written_over_what_is_needed(trained, tmp_path):
    _, run = trained
    text, same, loop = (tmp_path / name for name in ("in.txt", "same.txt", "loop"))
    text.write_text("one two\n")
    same.symlink_to(text)
    loop.symlink_to(loop)
    weights = run / "checkpoints" / "best" / "model.safetensors"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for output, error in (
        (tmp_path, UserError),
        (text, UserError),
        (same, UserError),
        (run / "config.toml", UserError),
        (weights, UserError),
        (run / "checkpoints" / "new.txt", UserError),
        (loop, StorageError),
    ):
        with pytest.raises(error, match=str(output)):
            _check_output(output, text, RunDir(run))
    _check_output(tmp_path / "new.txt", text, RunDir(run))
    refused = dragoman("translate", run, "-i", text, "-o", weights)
    assert str(weights) in sentence(refused, 2)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_translating_with_what_is_no_run(tmp_path):
    none = tmp_path / "none"
    assert str(none) in sentence(dragoman("translate", none, "one"), 2)
    (tmp_path / "empty").mkdir()
    assert "no checkpoint" in sentence(dragoman("translate", tmp_path / "empty", "x"), 2)


def test_memory_is_bounded_by_lines_and_by_characters():
    assert list(_batches(iter("abcde"), 2)) == [["a", "b"], ["c", "d"], ["e"]]
    long = "x" * CHARACTERS_AT_ONCE
    assert list(_batches(iter([long, long, "y"]), 100)) == [[long, long], ["y"]]
    assert list(_batches(iter([]), 2)) == []
