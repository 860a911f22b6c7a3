import shutil
import signal
import subprocess
import sys

from processes import dragoman, sentence


def test_an_export_says_where_it_is_and_which_step_it_is_of(trained, tmp_path):
    _, run = trained
    folder = tmp_path / "exported"
    done = dragoman("export", run, folder, "--to", "safetensors")
    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout
    assert "step 2" in done.stdout
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "config.json", "model.safetensors", "tokenizer.model")
    }


def test_a_checkpoint_is_exported_as_its_run_is(trained, tmp_path):
    _, run = trained
    best = run / "checkpoints" / "best"
    done = dragoman("export", best, tmp_path / "exported", "--to", "safetensors")
    assert done.returncode == 0, done.stderr
    alone = shutil.copytree(best, tmp_path / "mine")
    refused = dragoman("export", alone, tmp_path / "another", "--to", "safetensors")
    assert "name the folder of the run" in sentence(refused, 2)


def test_a_request_to_end_leaves_nothing(trained, tmp_path):
    _, run = trained
    place = tmp_path / "exports"
    place.mkdir()
    program = """
import os, signal, sys
from dragoman.cli import main
from dragoman.export import safetensors_format

def write(folder, content):
    (folder / "model.safetensors").write_bytes(b"a part")
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, signal.SIG_DFL)
safetensors_format.write_safetensors = write
main()
"""
    arguments = ("export", run, place / "exported", "--to", "safetensors")
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in done.stderr
    assert not list(place.iterdir())
