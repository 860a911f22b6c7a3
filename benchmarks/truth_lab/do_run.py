"""Does the run of a world in a lab; what was done to it, and when, is written down beside it."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import tomli_w

from dragoman.lab import Lab, remove_lab
from dragoman.lab.kernel import processes
from truth_lab.sabotage import python_of
from truth_lab.world import Cap, Leg, World

RECIPE = """
name = "truth"
[data]
source_language = "en"
target_language = "de"
max_length = 64
prepared = "{prepared}"
train = [{{ kind = "phrasebook", pairs = 4000 }}]
validation = [{{ kind = "phrasebook", pairs = 40 }}]
test = [{{ kind = "phrasebook", pairs = 40 }}]
[tokenizer]
vocabulary = 500
[model]  # 3.7 MB of gradients, and as little computing as that allows
preset = "transformer-tiny"
encoder_layers = 1
decoder_layers = 1
width = 192
heads = 4
filter = 512
[training]
device = "cpu"
steps = 100
micro_batch_tokens = 100
[schedule]
kind = "constant"
peak = 0.001
warmup_steps = 10
[evaluation]
every_steps = 1000000
translate_sentences = 4
train_sample_pairs = 20
samples = 1
[checkpoints]
every_steps = 1000000
[telemetry]
tensorboard = false
"""
ENDS_WITHIN_S = 240.0
POLL_S = 0.1
STARTED = 2
"""Of steps: only then processors are slowed, since starting would take minutes with them."""
QUOTA_PERIOD_US = 20_000
"""Short, so that a step sees a slower processor and not one that pauses."""
CPU_GROUPS = Path("/sys/fs/cgroup")


class CannotRunError(Exception):
    """This machine lacks what a world needs."""


def prepare(folder: Path) -> Path:
    """Writes the recipe of all worlds and prepares its data; returns the recipe."""
    recipe = folder / "truth.toml"
    recipe.write_text(RECIPE.format(prepared=folder / "prepared"), encoding="utf-8")
    _dragoman("prepare", recipe)
    return recipe


def do_run(world: World, recipe: Path, folder: Path) -> None:
    """Leaves `run`, `truth.json` and `train.log` in the folder of the world."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    name = f"truth{os.getpid() % 100_000}"
    run = folder / "run"
    try:
        lab = Lab.up(name, max(leg.nodes for leg in world.parts))
        pythons = {node.name: python_of(world, node.name, folder) for node in lab.nodes}
        if world.device_s == 0:
            _give_processors(lab)
        with contextlib.ExitStack() as at_end:
            log = at_end.enter_context((folder / "train.log").open("w"))
            slow = _slow_processors(world, lab)
            changes = _Changes(world, lab, run, lambda: at_end.enter_context(slow))
            for leg in world.parts:
                hosts = _host_list(world, leg, lab, pythons, folder)
                _train(world, leg, recipe, run, hosts, lab, changes, log)
    finally:
        remove_lab(name)
    for python in pythons.values():
        shutil.rmtree(python.parent)
    truth = {"world": dataclasses.asdict(world), "changes": changes.made}
    (folder / "truth.json").write_text(json.dumps(truth, indent=2), encoding="utf-8")


def report(folder: Path) -> None:
    """Has the report of a world's run written, by the command."""
    _dragoman("report", folder / "run")


class _Changes:
    """What is done to the lab while a run goes on, and what has been done."""

    def __init__(
        self, world: World, lab: Lab, run: Path, slow_processors: Callable[[], None]
    ) -> None:
        self._lab, self._run = lab, run
        self._slow_processors: Callable[[], None] | None = slow_processors
        self.made: list[dict[str, object]] = []
        self._waiting: list[tuple[int, Cap, bool]] = []
        self._in_turn: dict[Cap, float] = {}
        for cap in world.caps:
            if cap.from_step == 0:
                self._set(cap, True)
            else:
                self._waiting.append((cap.from_step, cap, True))
            if cap.until_step:
                self._waiting.append((cap.until_step, cap, False))
        self._holds = {cap: cap.from_step == 0 for cap in world.caps}

    def make(self) -> None:
        """Makes what is due; to be called often."""
        step = last_step(self._run)
        if self._slow_processors and step >= STARTED:
            self._slow_processors()
            self._slow_processors = None
            self.made.append({"wall_at": time.time(), "holds": True, "what": "processors"})
        for change in list(self._waiting):
            due, cap, holds = change
            if step >= due:
                self._waiting.remove(change)
                self._set(cap, holds)
                self._holds[cap] = holds
                self._in_turn[cap] = time.monotonic()
        for cap, since in self._in_turn.items():
            if cap.on_s and time.monotonic() - since >= (
                cap.on_s if self._holds[cap] else cap.off_s
            ):
                self._holds[cap] = not self._holds[cap]
                self._set(cap, self._holds[cap])
                self._in_turn[cap] = time.monotonic()

    def _set(self, cap: Cap, holds: bool) -> None:
        for host in cap.hosts:
            self._lab.rate(host, cap.rate if holds else "none", cap.direction)
        self.made.append({"wall_at": time.time(), "holds": holds, **dataclasses.asdict(cap)})


def last_step(run: Path) -> int:
    """Returns the newest step that rank 0 has recorded; 0 if there is none."""
    newest = sorted(run.glob("events/attempt-*-rank-0000.jsonl"))
    if not newest:
        return 0
    with newest[-1].open("rb") as file:
        file.seek(max(0, newest[-1].stat().st_size - 20_000))
        found = re.findall(rb'"kind":"step".*?"step":(\d+)', file.read())
    return int(found[-1]) if found else 0


def _train(
    world: World,
    leg: Leg,
    recipe: Path,
    run: Path,
    hosts: Path,
    lab: Lab,
    changes: _Changes,
    log: object,
) -> None:
    settings = {
        "training.steps": world.steps,
        "training.tokens_per_update": world.tokens_per_update,
        "checkpoints.every_steps": 10 if leg.ending == "kill" else 1_000_000,
    }
    words = [sys.executable, "-m", "dragoman", "train", recipe, "--run", run, "--hosts", hosts]
    words += ["--skip-check"]  # what it forecasts is not what is tried here
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    process = subprocess.Popen(
        list(map(str, words)), stdout=log, stderr=subprocess.STDOUT, cwd=run.parent
    )
    is_disturbed = leg.ending == "finish"
    deadline = time.monotonic() + ENDS_WITHIN_S
    try:
        while process.poll() is None:
            changes.make()
            if not is_disturbed and last_step(run) >= leg.until_step:
                is_disturbed = True
                if leg.ending == "SIGTERM":
                    process.send_signal(signal.SIGTERM)
                else:
                    _kill_a_rank(lab)
            if time.monotonic() > deadline:
                raise RuntimeError(f"{world.name}: the run did not end in {ENDS_WITHIN_S:.0f} s")
            time.sleep(POLL_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode and leg.ending == "finish":
        text = (run.parent / "train.log").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{world.name}: the run failed\n{text}")


def _kill_a_rank(lab: Lab) -> None:
    for process in processes(lab.nodes[-1].namespace):
        with contextlib.suppress(psutil.Error):
            if re.fullmatch(r"dragoman-\d+", psutil.Process(process.pid).name()):
                os.kill(process.pid, signal.SIGKILL)
                return


def _host_list(world: World, leg: Leg, lab: Lab, pythons: dict[str, Path], folder: Path) -> Path:
    hosts = [
        {
            "name": node.name,
            "address": str(node.address),
            "folder": str(node.folder),
            "python": str(pythons[node.name]),
            "devices": world.workers,
        }
        for node in lab.nodes[: leg.nodes]
    ]
    path = folder / "hosts.toml"
    path.write_text(tomli_w.dumps({"ssh_config": str(lab.ssh_config), "hosts": hosts}))
    return path


def _give_processors(lab: Lab) -> None:
    """Gives each host one processor, as far as there are enough."""
    for number, node in enumerate(lab.nodes):
        for process in processes(node.namespace):
            os.sched_setaffinity(process.pid, {number % (os.cpu_count() or 1)})


@contextlib.contextmanager
def _slow_processors(world: World, lab: Lab) -> Iterator[None]:
    """While open, hosts have less than a processor, or one that other programs use as well."""
    groups: list[Path] = []
    loops: list[subprocess.Popen[bytes]] = []
    try:
        for host, share in world.quotas.items():
            groups.append(_limit_processor(f"{lab.name}-{host}", share))
            for process in processes(lab.node(host).namespace):
                (groups[-1] / "cgroup.procs").write_text(str(process.pid))
        for host, count in world.busy_loops.items():
            spin = lab.command(host, [sys.executable, "-c", "while True: pass"])
            (first, *_) = processes(lab.node(host).namespace)
            cores = os.sched_getaffinity(first.pid)
            for _ in range(count):
                # In sessions of their own: Linux shares processors out among sessions.
                loops.append(subprocess.Popen(spin, start_new_session=True))
                os.sched_setaffinity(loops[-1].pid, cores)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        for node in lab.nodes:
            with contextlib.suppress(Exception):
                lab.kill(node.name)
        for group in groups:
            group.rmdir()


def _limit_processor(name: str, share: float) -> Path:
    """Makes a control group that may use so much of one processor; of either version of Linux."""
    quota_us = round(share * QUOTA_PERIOD_US)
    try:
        if (CPU_GROUPS / "cpu" / "cpu.shares").exists() or (CPU_GROUPS / "cpu").is_dir():
            group = CPU_GROUPS / "cpu" / name
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            group = CPU_GROUPS / name
            group.mkdir()
            (group / "cpu.max").write_text(f"{quota_us} {QUOTA_PERIOD_US}")
    except OSError as error:
        raise CannotRunError(
            f"control groups of processors cannot be made here: {error}"
        ) from error
    return group


def _dragoman(*arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
