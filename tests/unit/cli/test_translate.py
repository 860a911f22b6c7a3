import os
import shutil
import subprocess

import pytest
from digits_language import write_recipe
from processes import dragoman, sentence

from dragoman.cli.translate import CHARACTERS_AT_ONCE, _batches

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    recipe, run = write_recipe(folder), folder / "run"
    done = dragoman("train", recipe, "--run", run, "--set", "training.steps=2")
    assert done.returncode == 0, done.stderr
    return run


@pytest.fixture
def run(trained_once, tmp_path):
    return shutil.copytree(trained_once, tmp_path / "run", symlinks=True)


def test_text_in_text_out_in_every_way(run, tmp_path):
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


def test_translations_go_through_links_and_pipes_and_never_over_what_is_needed(run, tmp_path):
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

    same = tmp_path / "same.txt"
    same.symlink_to(text)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for output, code, said in (
        (tmp_path, 2, "is a folder; name a file"),
        (text, 2, "is --input as well"),
        (same, 2, "is --input as well"),
        (run / "config.toml", 2, "belongs to the run"),
        (run / "checkpoints" / "best" / "model.safetensors", 2, "belongs to the run"),
        (run / "checkpoints" / "new.txt", 2, "belongs to the run"),
        (loop, 1, "loop: "),
    ):
        assert said in sentence(dragoman("translate", run, "-i", text, "-o", output), code)
    assert text.read_text() == "one two\n"
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
