"""A save that is cut off between any two system calls leaves the old state or the new, whole."""

import errno
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from disk_calls import Call, Fault, die, die_half_way, disk_calls, fails_with

from dragoman.checkpoints import tensorfile
from dragoman.checkpoints.background import BackgroundSaver, Place, Saved
from dragoman.checkpoints.finding import all_checkpoints, newest_whole, verify
from dragoman.checkpoints.names import folder_of

pytestmark = [
    pytest.mark.timeout(240),
    # Python warns of forks beside other threads; the children here only copy and write bytes.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

OWNER = {"settings": "these"}


@pytest.fixture(autouse=True)
def small_and_fast(monkeypatch):
    # So that a file takes several writes.
    monkeypatch.setattr(tensorfile, "CHUNK_BYTES", 100)
    # A process that is killed, unlike a machine without power, loses nothing that it has written.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def save(root: Path, step: int, value: int, memory: bool = False) -> list[Saved]:
    """As training does it, with everything of a state equal to its value."""
    places = [Place(root / "run", keep_last=2, best_step=step)]
    if memory:
        places.insert(0, Place(root / "memory", keep_last=2))
    with BackgroundSaver(tokenizer_model=b"%d" % value, owner=OWNER) as saver:
        saver.begin(
            step,
            model={"embedding": torch.full((6, 8), value), "bias": torch.full((3,), value)},
            optimizer={"embedding|exp_avg": torch.full((6, 8), value)},
            state={"value": value},
            places=places,
        )
    return saver.results()


def state_of(root: Path) -> tuple[int, int]:
    """Step and value of what a run would go on from, all of which must belong together."""
    newest = newest_whole([root / "run", root / "memory"], OWNER)
    assert newest
    tensors = [*newest.model().values(), *newest.optimizer().values()]
    values = {int(value) for tensor in tensors for value in tensor.unique()}
    values |= {newest.state()["value"], int(newest.tokenizer_model())}
    assert len(values) == 1, f"a mixture of {values}"
    return newest.step, values.pop()


def first_save(root):
    save(root, 10, 1)


def after_two(root):
    save(root, 5, 5)
    save(root, 10, 1)


def after_a_crash(root):
    """Half a save, half a removal, half a link and half a replacement lie about."""
    save(root, 5, 5)
    save(root, 10, 1)
    run = root / "run"
    shutil.copytree(run / "step-00000005", run / ".unfinished-step-00000015-1")
    (run / ".unfinished-step-00000015-1" / "manifest.json").unlink()
    (run / "step-00000005").rename(run / ".removed-step-00000005")
    (run / ".removed-step-00000005" / "state.json").unlink()
    (run / "step-00000010").rename(run / ".replaced-step-00000010")
    (run / ".latest-1").symlink_to("step-00000015")


SAVES = {
    "the second checkpoint of a run": (first_save, 15, False),
    "one more, and the oldest goes": (after_two, 15, False),
    "the same step again": (first_save, 10, False),
    "an earlier step again, after going back": (after_two, 7, False),
    "the next after a crash": (after_a_crash, 15, False),
    "the same step again after a crash": (after_a_crash, 10, False),
    "to memory and to disk": (after_two, 15, True),
}


def killed(root: Path, step: int, value: int, at: int, how: Fault, memory: bool = False) -> bool:
    """Save in a process that is killed at a call; False: it made fewer calls and ended well."""
    child = os.fork()
    if child == 0:
        with disk_calls(at, how):
            save(root, step, value, memory)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def calls_of(root: Path, prepare, step: int, memory: bool) -> list[Call]:
    prepare(root)
    with disk_calls() as calls:
        assert not any(result.error for result in save(root, step, 2, memory))
    shutil.rmtree(root)
    return calls


def goes_on(root: Path) -> None:
    """The next save works, and nothing is left of what was cut off."""
    before = all_checkpoints(root / "run")[-1]
    assert [result.error for result in save(root, 20, 9)] == [None]
    assert state_of(root) == (20, 9)
    left = {path.name for path in (root / "run").iterdir()}
    assert left == {"latest", "best", folder_of(before.step), folder_of(20)}


@pytest.mark.parametrize("name", SAVES)
def test_killed_before_or_inside_any_call_the_old_state_or_the_new_is_whole(tmp_path, name):
    prepare, step, memory = SAVES[name]
    calls = calls_of(tmp_path / "tried", prepare, step, memory)
    prepare(tmp_path / "before")
    old, new = state_of(tmp_path / "before"), (step, 2)
    trials = [(number, die) for number in range(1, len(calls) + 1)]
    trials += [(n, die_half_way) for n, call in enumerate(calls, 1) if call.name == "write"]
    seen = []
    for at, how in trials:
        root = tmp_path / "trial"
        shutil.copytree(tmp_path / "before", root, symlinks=True)
        assert killed(root, step, 2, at, how, memory)
        seen.append(state_of(root))
        assert seen[-1] in (old, new), f"killed at {at}, {calls[at - 1]}"
        for checkpoint in all_checkpoints(root / "run"):
            verify(checkpoint)  # half a removal does not look like a torn checkpoint
        goes_on(root)
        shutil.rmtree(root)
    assert {*seen} == {old, new}
    assert not killed(tmp_path / "before", step, 2, len(calls) + 1, die, memory)
    assert state_of(tmp_path / "before") == new


@pytest.mark.parametrize("seed", range(6))
def test_killed_again_and_again_a_run_never_goes_back_further_than_one_save(tmp_path, seed):
    chance = random.Random(seed)
    save(tmp_path, 10, 1)
    state = state_of(tmp_path)
    for value in range(2, 22):
        step = state[0] + chance.choice([0, 1])
        killed(tmp_path, step, value, chance.randint(1, 60), chance.choice([die, die_half_way]))
        after = state_of(tmp_path)
        assert after in (state, (step, value)), f"seed {seed}, value {value}"
        state = after
    assert not any(result.error for result in save(tmp_path, 90, 99))
    assert len(list((tmp_path / "run").iterdir())) == 4


FAILURES = [errno.ENOSPC, errno.EIO, errno.EROFS]


@pytest.mark.parametrize("name", SAVES)
@pytest.mark.parametrize(
    "stays",
    [
        pytest.param(False, id="once"),
        pytest.param(True, id="from then on", marks=pytest.mark.cluster),
    ],
)
def test_a_disk_that_fails_at_any_call_damages_nothing_and_is_tried_again(tmp_path, name, stays):
    prepare, step, memory = SAVES[name]
    calls = calls_of(tmp_path / "tried", prepare, step, memory)
    prepare(tmp_path / "before")
    old, new = state_of(tmp_path / "before"), (step, 2)
    for at, call in enumerate(calls, 1):
        root = tmp_path / "trial"
        shutil.copytree(tmp_path / "before", root, symlinks=True)
        with disk_calls(at, fails_with(FAILURES[at % len(FAILURES)]), stays):
            results = save(root, step, 2, memory)
        assert state_of(root) in (old, new), f"failed at {at}, {call}"
        if not any(result.error for result in results):
            assert state_of(root) == new, f"failed unnoticed at {at}, {call}"
        goes_on(root)
        shutil.rmtree(root)


TRACED = """
import sys
from pathlib import Path
from disk_calls import disk_calls
import torch
from dragoman.checkpoints.background import BackgroundSaver, Place

with disk_calls() as calls, BackgroundSaver(b"pieces") as saver:
    for step in (1, 2, 2):
        tensors = {"weight": torch.ones(3)}
        saver.begin(step, tensors, tensors, {}, [Place(Path(sys.argv[1]), keep_last=1)], must=True)
for call in calls:
    print(call.name)
"""


ONLY_LOOKS = (
    *("execve", "stat", "lstat", "fstat", "newfstatat", "statx", "readlink", "readlinkat"),
    *("close", "getdents64", "lseek", "fcntl", "ioctl", "read"),
)


def test_the_calls_that_are_counted_are_all_that_the_system_sees(tmp_path):
    root, trace = tmp_path / "run", tmp_path / "trace"
    options = ["-f", "-y", "-o", trace, "-e", "trace=%file,%desc", "-e", "signal=none"]
    program = [sys.executable, "-c", TRACED, root]
    try:
        subprocess.run(["strace", "true"], stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("strace is not installed or may not trace here")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    counted = subprocess.run(
        ["strace", *options, *program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    seen = [
        name
        for line in trace.read_text().splitlines()
        if str(tmp_path) in line and (name := _change(line))
    ]
    assert len(counted) > 60
    assert seen == counted


def _change(line: str) -> str | None:
    """What a line of strace's changes on disk, by the name of the call that is counted."""
    call = re.match(r"\d+ +(\w+)\(", line)
    name = call[1] if call else "execve"
    if name == "openat" and "O_CREAT" not in line:
        return None
    if name == "unlinkat" and "AT_REMOVEDIR" in line:
        return "rmdir"
    return None if name in ONLY_LOOKS else re.sub(r"at2?$", "", name)
