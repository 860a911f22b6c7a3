import pytest
import torch

from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.training.checkpointing import roots_of
from dragoman.training.setup import start

ALONE = Group(0, 1, 0, torch.device("cpu"))


def test_a_device_that_is_not_there_is_refused(run_with):
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(UserError, match=r"set training\.device to cpu"):
        run_with("training.device=cuda")


def test_what_killed_attempts_left_is_removed_at_the_next_start(run_with, digits, tmp_path):
    memory = f"checkpoints.memory_folder={tmp_path}/memory"
    _, run = run_with("training.steps=5", memory)
    config = parse_config(digits.read_text(encoding="utf-8"), "x", [memory])
    roots = roots_of(run, config.checkpoints)
    for root in roots:
        (root / ".unfinished-step-00000009-123").mkdir(parents=True)
        (root / ".removed-step-00000001").mkdir()
        (root / ".latest-123").symlink_to("step-00000005")
    (run.root / f".seen-{16 * 'a'}-3").touch()
    (run.root / ".status.json-0123456789abcdef").touch()
    run.references.parent.mkdir(exist_ok=True)
    (run.references.parent / ".step-00000005.txt-0123456789abcdef").touch()
    with start(config, run, ALONE):
        hidden = [path.name for root in (run.root, *roots) for path in root.rglob(".*")]
        assert hidden == [".lock"]
