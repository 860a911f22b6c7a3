import shutil
from pathlib import Path

import pytest

from dragoman.checkpoints.located import locate, run_and_checkpoint
from dragoman.checkpoints.names import MANIFEST, STATE
from dragoman.errors import UserError
from dragoman.rundir import RunDir


@pytest.fixture
def run(tmp_path):
    """A run with one checkpoint, which is the best."""
    directory = RunDir(tmp_path / "run")
    folder = directory.checkpoints / "step-00000300"
    folder.mkdir(parents=True)
    for name in (MANIFEST, STATE):
        (folder / name).write_text("{}")
    (directory.checkpoints / "best").symlink_to(folder.name)
    directory.config.write_text("")
    return directory


def test_a_run_is_a_run_also_where_it_is_not(run, tmp_path):
    assert locate(run.root) == (run.root, run, "")
    assert locate(tmp_path / "none").run == RunDir(tmp_path / "none")
    run.config.unlink()
    assert locate(run.root).run == run


@pytest.mark.parametrize(
    ("name", "which"), [("best", "best"), ("latest", "latest"), ("step-00000300", "300")]
)
def test_a_checkpoint_leads_to_its_run(run, name, which):
    located = locate(run.checkpoints / name)
    assert (located.run, located.checkpoint) == (run, which)
    assert located.is_checkpoint
    assert run_and_checkpoint(run.checkpoints / name, "best", 1) == (run, which)


def test_a_relative_path_leads_to_its_run_too(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert locate(run.checkpoints.relative_to(tmp_path) / "best").run.root.name == "run"
    monkeypatch.chdir(run.checkpoints)
    for path in ("best", "./best", "../checkpoints/best"):
        located = locate(Path(path))
        assert located.run.root.resolve() == run.root.resolve()
        assert located.checkpoint == "best"


def test_a_checkpoint_without_its_run_stands_alone(run, tmp_path):
    copied = (run.checkpoints / "step-00000300").rename(tmp_path / "step-00000300")
    (tmp_path / "link").symlink_to(copied)
    renamed = shutil.copytree(copied, tmp_path / "best")
    for path in (copied, tmp_path / "link", renamed):
        located = locate(path)
        assert located.run is None
        assert located.is_checkpoint
        with pytest.raises(UserError, match="without its run"):
            run_and_checkpoint(path, "best", 1)


@pytest.mark.parametrize(("checkpoint", "average"), [("latest", 1), ("300", 1), ("best", 2)])
def test_two_choices_of_a_checkpoint_are_refused(run, checkpoint, average):
    with pytest.raises(UserError, match=f"{checkpoint if average == 1 else average} would choose"):
        run_and_checkpoint(run.checkpoints / "best", checkpoint, average)
    assert run_and_checkpoint(run.root, checkpoint, average) == (run, checkpoint)
