"""A machine that loses power in a save loses what was not synced, and never the last whole state.

The calls of a save are recorded and played on a disk in memory that keeps for sure only what it was
told to sync. After a cut, each file has lost any part of what was not, and each folder any of the
changes that were not: more than real file systems lose, most of which keep an order.
"""

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from disk_calls import Call, disk_calls

from dragoman.checkpoints import tensorfile
from dragoman.checkpoints.finding import newest_whole
from dragoman.checkpoints.names import point_to
from dragoman.checkpoints.storage import prune, save_checkpoint


@dataclass
class File:
    content: bytes = b""
    synced: bytes = b""

    def after_cut(self, chance: random.Random) -> "File":
        lost = self.content[len(self.synced) :]
        kept = lost[: chance.randint(0, len(lost))]
        # Where the size was kept and the content was not, there are zeros.
        zeros = bytes(chance.choice([0, len(lost) - len(kept)]))
        return File(self.synced + kept + zeros)


@dataclass
class Link:
    target: str

    def after_cut(self, chance: random.Random) -> "Link":
        return self


@dataclass
class Folder:
    entries: dict[str, "Node"] = field(default_factory=dict)
    synced: dict[str, "Node"] = field(default_factory=dict)
    changes: list[tuple[str, str, "Node | None"]] = field(default_factory=list)
    """Since it was synced: a name that goes, one that comes, and what it stands for."""

    def change(self, gone: str, comes: str = "", node: "Node | None" = None) -> None:
        self.changes.append((gone, comes, node))
        _apply(self.entries, gone, comes, node)

    def after_cut(self, chance: random.Random) -> "Folder":
        left = dict(self.synced)
        for change in self.changes:
            if chance.random() < 0.5:
                _apply(left, *change)
        return Folder({name: node.after_cut(chance) for name, node in left.items()})


Node = File | Link | Folder


def _apply(entries: dict[str, Node], gone: str, comes: str, node: Node | None) -> None:
    entries.pop(gone, None)
    if node is not None:
        entries[comes] = node


def read(path: Path) -> Node:
    """As it is on a real disk, all of it synced."""
    if path.is_symlink():
        return Link(str(path.readlink()))
    if path.is_file():
        return File(path.read_bytes(), path.read_bytes())
    entries = {entry.name: read(entry) for entry in path.iterdir()}
    return Folder(dict(entries), dict(entries))


def write(node: Node, path: Path) -> None:
    if isinstance(node, Link):
        path.symlink_to(node.target)
    elif isinstance(node, File):
        path.write_bytes(node.content)
    else:
        path.mkdir()
        for name, entry in node.entries.items():
            write(entry, path / name)


def play(disk: Folder, root: Path, call: Call) -> None:
    *folders, name = call.path.relative_to(root).parts or ("",)
    folder = disk
    for part in folders:
        folder = folder.entries[part]
    node = folder.entries.get(name, disk)
    match call.name:
        case "mkdir":
            folder.change("", name, Folder())
        case "open":
            folder.change("", name, File())
        case "symlink":
            folder.change("", name, Link(str(call.other)))
        case "write":
            node.content += call.content
        case "fsync" if isinstance(node, File):
            node.synced = node.content
        case "fsync":
            node.synced = dict(node.entries)
            node.changes.clear()
        case "rename":
            folder.change(name, call.other.name, node)
        case "unlink" | "rmdir":
            folder.change(name)


def save(root, step, value):
    checkpoint = save_checkpoint(
        root,
        step,
        model={"weight": torch.full((40,), value)},
        optimizer={"weight|exp_avg": torch.full((40,), value)},
        state={"value": value},
        tokenizer_model=b"pieces",
    )
    point_to(root, "latest", checkpoint.folder.name)
    prune(root, [step], owner={})


def state_of(root):
    newest = newest_whole(root)
    assert newest.model()["weight"].unique().tolist() == [newest.state()["value"]]
    return newest.step, newest.state()["value"]


@pytest.mark.parametrize("step", [10, 15], ids=["the same step again", "the next"])
def test_a_power_cut_after_any_call_leaves_the_old_state_or_the_new(tmp_path, step, monkeypatch):
    monkeypatch.setattr(tensorfile, "CHUNK_BYTES", 100)
    root, cut = tmp_path / "run", tmp_path / "cut"
    save(root, 10, 1)
    before = read(root)
    with disk_calls() as calls:
        save(root, step, 2)
    last_sync = max(n for n, call in enumerate(calls) if call == Call("fsync", root))
    seen = set()
    for seed in range(4):
        chance = random.Random(seed)
        write(before, tmp_path / "copy")
        disk = read(tmp_path / "copy")
        shutil.rmtree(tmp_path / "copy")
        for number, call in enumerate(calls):
            play(disk, root, call)
            write(disk.after_cut(chance), cut)
            state = state_of(cut)
            assert state in ((10, 1), (step, 2)), f"seed {seed}, after {call}"
            if number >= last_sync:
                assert state == (step, 2), f"seed {seed}: lost after it was saved"
            seen.add(state)
            shutil.rmtree(cut)
    assert seen == {(10, 1), (step, 2)}
