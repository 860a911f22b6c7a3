"""Small checkpoints, and what may happen to them."""

import json
import shutil

import torch

from dragoman.checkpoints.storage import save_checkpoint


def save(root, step, value=1.0, owner=None):
    return save_checkpoint(
        root,
        step,
        model={"weight": torch.full((3, 2), value)},
        optimizer={"weight|exp_avg": torch.full((3, 2), value)},
        state={"run": {"step": step}},
        tokenizer_model=b"pieces",
        owner=owner,
    )


def damage(checkpoint, kind):
    path = checkpoint.folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    if kind == "truncated":
        path.write_bytes(content[:-5])
    elif kind == "bit flipped":
        content[-1] ^= 4
        path.write_bytes(content)
    elif kind == "file missing":
        path.unlink()
    elif kind == "manifest torn":
        (checkpoint.folder / "manifest.json").write_text('{"files": {')
    elif kind == "manifest missing":
        (checkpoint.folder / "manifest.json").unlink()
    elif kind == "manifest of nothing":
        (checkpoint.folder / "manifest.json").write_text('{"files": {}}')
    elif kind == "manifest of something else":
        (checkpoint.folder / "manifest.json").write_text(
            json.dumps({"files": dict.fromkeys(sorted(checkpoint.sizes()), 1)})
        )
    elif kind == "optimizer of another step":
        other = save(checkpoint.folder.parent / "x", 3, value=3.0)
        shutil.copy(other.folder / "optimizer.safetensors", checkpoint.folder)
    elif kind == "empty folder":
        shutil.rmtree(checkpoint.folder)
        checkpoint.folder.mkdir()
    elif kind == "of another step":
        shutil.rmtree(checkpoint.folder)
        shutil.copytree(save(checkpoint.folder.parent / "x", 3).folder, checkpoint.folder)
