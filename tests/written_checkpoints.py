"""Checkpoints written by hand: files as they lie on a disk, with hashes that are right."""

import hashlib
import json
import random
from pathlib import Path

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.model")


def write_checkpoint(root: Path, step: int, run_id: str, size: int = 2000, seed: int = 0) -> Path:
    """Four files of random bytes that follow from step and seed, and their manifest."""
    folder = root / f"step-{step:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(step * 1000 + seed)
    files = {}
    for name in FILES:
        content = chance.randbytes(size)
        if name == "state.json":
            content = json.dumps({"format": 2, "step": step, "ranks": 2}).encode()
        (folder / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        files[name] = {"bytes": len(content), "sha256": digest}
    manifest = {"step": step, "owner": {"id": run_id}, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
