"""A run on three lab nodes with one fault after another, and the same run left in peace.

    sudo python benchmarks/chaos.py [--seed N] [--steps N] [--pause-s N | --every-s N]
                                    [--min-hosts N] [--folder FOLDER]

Faults are drawn from a seeded generator: a rank killed or stopped, a link cut, two nodes parted, a
host lost, a disk filled, a checkpoint torn, a disk kept busy. The next one comes a few seconds
after the run has gone on, or with --every-s at fixed times. At the end: is the loss that of the
undisturbed run, was every pair seen once an epoch, and what did the faults cost? With --min-hosts 3
the run waits until all hosts are back, and every loss must be that of the undisturbed run to the
last bit. With --folder runs and logs are kept, and the next call uses the undisturbed run again.
"""

import argparse
import os
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psutil
import tomli_w

from dragoman.batches.plan import BatchPlan
from dragoman.checkpoints.finding import all_checkpoints
from dragoman.config import Config, load_config
from dragoman.console import duration
from dragoman.diagnosis.run.facts import read_facts
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.lab import Lab, remove_lab
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir, read_json
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.telemetry.read.events import read_events

NODES = ("node1", "node2", "node3")
DISK_BYTES = 60_000_000
TOLERANCE = 0.02
"""Of the final validation loss, in nats. With two ranks instead of three, sums are added up in
another order, and from there on two runs drift apart as two seeds would, only later."""


def changes(steps: int) -> dict[str, object]:
    return {
        "training.steps": steps,
        "training.micro_batch_tokens": 512,
        "training.device": "cpu",
        "model.width": 64,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "model.filter": 128,
        "schedule.kind": "inverse-square-root",
        "evaluation.every_steps": steps,
        "evaluation.translate_sentences": 50,
        "checkpoints.every_steps": 25,
    }


class Chaos:
    """Faults on a lab; each returns what it did. Whoever breaks something also mends it."""

    def __init__(self, lab: Lab, run: str, chance: random.Random) -> None:
        self._lab, self._run, self._chance = lab, run, chance
        self.kinds: dict[str, Callable[[str], str]] = {
            "rank killed": lambda node: self._signal(node, signal.SIGKILL),
            "rank stopped": lambda node: self._signal(node, signal.SIGSTOP),
            "link cut": self._cut,
            "nodes parted": self._part,
            "host lost": self._lose,
            "disk full": self._fill,
            "checkpoint torn": self._tear,
            "disk busy": self._keep_busy,
        }

    def strike(self) -> str:
        kind = self._chance.choice(sorted(self.kinds))
        node = self._chance.choice(NODES)
        return f"{kind} on {node}{self.kinds[kind](node)}"

    def _workers(self, node: str) -> list[psutil.Process]:
        network = (
            subprocess.run(
                self._lab.command(node, ["readlink", "/proc/self/ns/net"]),
                capture_output=True,
                text=True,
                check=True,
            )
        ).stdout.strip()
        found = []
        for process in psutil.process_iter():
            try:
                is_there = str(Path(f"/proc/{process.pid}/ns/net").readlink()) == network
                if is_there and re.fullmatch(r"dragoman-\d+", process.name()):
                    found.append(process)
            except (OSError, psutil.Error):
                continue
        return found

    def _signal(self, node: str, number: int) -> str:
        workers = self._workers(node)
        for worker in workers[:1]:
            os.kill(worker.pid, number)
        return "" if workers else " (none was running)"

    def _cut(self, node: str) -> str:
        seconds = self._chance.uniform(2, 20)
        self._lab.cut(node)
        time.sleep(seconds)
        self._lab.heal(node)
        return f" for {seconds:.0f} s"

    def _part(self, node: str) -> str:
        other = self._chance.choice([name for name in NODES if name != node])
        seconds = self._chance.uniform(2, 20)
        self._lab.partition(node, other)
        time.sleep(seconds)
        self._lab.heal(node, other)
        return f" from {other} for {seconds:.0f} s"

    def _lose(self, node: str) -> str:
        seconds = self._chance.uniform(2, 30)
        self._lab.kill(node)
        time.sleep(seconds)
        self._lab.boot(node)
        return f" for {seconds:.0f} s"

    def _fill(self, node: str) -> str:
        place = Path(self._lab.node(node).folder) / "runs" / "fill"
        with place.open("wb") as file:
            try:
                while file.write(bytes(1 << 16)):
                    file.flush()
                    if file.tell() > 2 * DISK_BYTES:
                        break
            except OSError:
                pass
        time.sleep(self._chance.uniform(3, 10))
        place.unlink()
        return ""

    def _tear(self, node: str) -> str:
        folder = Path(self._lab.node(node).folder) / "runs" / self._run / "checkpoints"
        saved = all_checkpoints(folder)
        if not saved:
            return " (there was none)"
        torn = saved[-1].folder / "optimizer.safetensors"
        try:
            os.truncate(torn, torn.stat().st_size // 2)
        except OSError:
            return " (it was gone meanwhile)"
        return f", {saved[-1].folder.name}, and a rank killed{self._signal(node, signal.SIGKILL)}"

    def _keep_busy(self, node: str) -> str:
        place = Path(self._lab.node(node).folder) / "busy"
        ends = time.monotonic() + self._chance.uniform(3, 8)
        while time.monotonic() < ends:
            with place.open("wb") as file:
                file.write(bytes(4 << 20))
                file.flush()
                os.fsync(file.fileno())
        place.unlink()
        return ""


def main() -> None:
    arguments = _arguments()
    recipe = shipped_recipe("demo").resolve()
    print(f"machine: {platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}")
    print(
        f"seed {arguments.seed}, {arguments.steps:,} steps on 3 nodes, "
        f"min_hosts = {arguments.min_hosts}\n",
        flush=True,
    )
    with ExitStack() as at_end:
        temporary = arguments.folder or at_end.enter_context(tempfile.TemporaryDirectory())
        home = Path(temporary).resolve()
        home.mkdir(parents=True, exist_ok=True)
        quiet = home / "quiet-seconds"
        if not quiet.exists():  # a folder that was kept has it from the time before
            quiet.write_text(str(_train(recipe, home, "quiet", arguments, disturbed=False)))
        quiet_s = float(quiet.read_text())
        chaos_s = _train(recipe, home, "chaos", arguments, disturbed=True)
        tolerance = TOLERANCE if arguments.min_hosts < len(NODES) else 0.0
        _judge(recipe, home, arguments.steps, quiet_s, chaos_s, tolerance)


def _train(
    recipe: Path, home: Path, name: str, arguments: argparse.Namespace, disturbed: bool
) -> float:
    lab_name = f"chaos{os.getpid() % 1000}"
    chance = random.Random(arguments.seed)
    run = RunDir(home / "runs" / name)
    try:
        lab = Lab.up(lab_name, 3, "1gbit")
        for node in NODES[:2]:
            lab.disk(node, DISK_BYTES)
        hosts = home / "hosts.toml"
        hosts.write_text(_elastic(lab, arguments.min_hosts))
        words = [
            *(sys.executable, "-m", "dragoman", "train", recipe, "--run", run.root),
            *("--hosts", hosts, "--skip-check"),
            *(w for key, v in changes(arguments.steps).items() for w in ("--set", f"{key}={v}")),
        ]
        begun = time.monotonic()
        with (home / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                list(map(str, words)),
                cwd=home,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            chaos = Chaos(lab, name, chance)
            while process.poll() is None:
                if not disturbed:
                    time.sleep(0.5)
                elif _goes_on(run, process):
                    if arguments.every_s:
                        time.sleep(-(time.monotonic() - begun) % arguments.every_s)
                    else:
                        time.sleep(chance.uniform(1, 2 * arguments.pause_s))
                    if process.poll() is None:
                        what = chaos.strike()
                        print(f"  {time.monotonic() - begun:6.0f} s: {what}", flush=True)
        took_s = time.monotonic() - begun
    finally:
        remove_lab(lab_name)
    if process.returncode or read_json(run.status)["state"] != "finished":
        sys.exit((home / f"{name}.log").read_text()[-4000:])
    print(f"{name}: {took_s:.0f} s\n", flush=True)
    return took_s


def _elastic(lab: Lab, min_hosts: int) -> str:
    content = tomllib.loads(Path(lab.hosts).read_text())
    return tomli_w.dumps(content | {"min_hosts": min_hosts, "ssh_config": str(lab.ssh_config)})


def _goes_on(run: RunDir, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the run has made steps since now; False: it has ended."""
    before = _step(run)
    while process.poll() is None:
        if 0 < before < _step(run):
            return True
        before = before or _step(run)
        time.sleep(0.2)
    return False


def _step(run: RunDir) -> int:
    try:
        return int(read_json(run.status).get("step", 0))
    except Exception:  # it is being written for the first time
        return 0


def _judge(
    recipe: Path, home: Path, steps: int, quiet_s: float, chaos_s: float, tolerance: float
) -> None:
    quiet, chaos = RunDir(home / "runs" / "quiet"), RunDir(home / "runs" / "chaos")
    _print_faults(read_facts(chaos, time.time()).faults)
    final, wanted = _final_loss(chaos), _final_loss(quiet)
    difference = abs(final - wanted)
    print(f"\nfinal validation loss {final:.4f}, undisturbed {wanted:.4f}: {difference:.4f} apart")
    losses = _losses(chaos)
    parted = [step for step, loss in _losses(quiet).items() if losses.get(step) != loss]
    print(
        f"training losses differ from step {min(parted):,} on"
        if parted
        else f"the losses of all {steps:,} steps are equal to the last bit"
    )
    print(f"took {chaos_s:.0f} s, undisturbed {quiet_s:.0f} s")
    overrides = [f"{key}={value}" for key, value in changes(steps).items()]
    is_exact = _every_pair_once(load_config(recipe, overrides), home, chaos)
    print(f"every training pair exactly once an epoch: {'yes' if is_exact else 'NO'}")
    is_equal = difference <= tolerance and (tolerance > 0 or not parted)
    sys.exit(0 if is_equal and is_exact else 3)


def _print_faults(history: FaultHistory) -> None:
    print(
        f"{len(history.faults)} faults, {history.lost_steps:,} steps and {duration(history.cost_s)}"
        f" lost; goodput {history.step_goodput:.1%} of the steps, {history.time_goodput:.1%} of the"
        " time"
    )
    for fault in history.faults:
        at = datetime.fromtimestamp(fault.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        print(
            f"{at}, attempt {fault.attempt}, step {fault.step:,}: {fault.kind}: {fault.what}; "
            f"lost {fault.lost_steps:,} steps and {duration(fault.lost_s)}, down for "
            f"{duration(fault.down_s)}; {fault.recovery or 'the run has not gone on yet'}"
        )


def _losses(run: RunDir) -> dict[int, float]:
    """Of repeated steps, the last that was recorded; by any rank, since a host may take rank 0's
    last records with it."""
    events = (recorded.stamped.event for recorded in read_events(run))
    return {event.step: event.loss for event in events if isinstance(event, StepDone)}


def _final_loss(run: RunDir) -> float:
    found = [r.stamped.event for r in read_events(run) if isinstance(r.stamped.event, Evaluated)]
    return found[-1].validation_loss


def _every_pair_once(config: Config, home: Path, run: RunDir) -> bool:
    """Each step's batch follows from its number; the tokens that were recorded must be its own."""
    data = PreparedData.open(home / "prepared" / config.name)
    settings = config.training
    plan = BatchPlan(
        data.shards("train").lengths(),
        settings.tokens_per_update,
        settings.micro_batch_tokens,
        settings.seed,
    )
    recorded = {
        r.stamped.event.step: r.stamped.event.tokens
        for r in read_events(run)
        if isinstance(r.stamped.event, StepDone)
    }
    assert settings.steps
    if sorted(recorded) != list(range(1, settings.steps + 1)):
        return False
    seen: Counter[tuple[int, int]] = Counter()
    for step, tokens in recorded.items():
        batch = plan.batch(step)
        if batch.tokens != tokens:
            return False
        epoch = (step - 1) // plan.steps_per_epoch
        seen.update((epoch, int(pair)) for micro in batch.micro_batches for pair in micro.pairs)
    return set(seen.values()) == {1}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--pause-s", type=float, default=5.0)
    parser.add_argument("--every-s", type=float, help="a fault each so many seconds")
    parser.add_argument("--folder", help="keep runs and logs here, instead of removing them")
    parser.add_argument("--min-hosts", type=int, default=2, choices=(1, 2, 3))
    return parser.parse_args()


if __name__ == "__main__":
    main()
