"""One lab node against two, with a core each: how much of the second core becomes tokens?

Nodes are network namespaces of this machine, so they share its caches and its memory. What that
costs is measured too: two nodes that train alone, beside each other.
"""

import os
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import tomli_w
from train_bench.candidates import own_source, threads_of, train_command
from train_bench.watch import run_watched

from dragoman.errors import UserError
from dragoman.lab import Lab, remove_lab
from dragoman.lab.kernel import check_machine, processes
from dragoman.rundir import RunDir
from scaling_bench.bench import (
    LIMIT_S,
    SMALL_STEPS,
    WARM_UP_STEPS,
    Bench,
    set_options,
    steps_by_rank,
)
from scaling_bench.figures import common_tokens_per_s, step_figures
from scaling_bench.tables import Column, Round, Section

NODES = 2
ALONE, BESIDE = "1 node", "2 nodes that train alone, beside each other"
RATES = {"2 nodes, unlimited link": "none", "2 nodes, 1 Gbit/s": "1gbit"}


def obstacle() -> str:
    """Returns why this machine cannot run the section; empty: it can."""
    try:
        check_machine()
    except UserError as error:
        return str(error)
    cores = len(os.sched_getaffinity(0))
    return "" if cores >= NODES else f"{NODES} nodes need a core each, and there is {cores}"


def measure_alone(bench: Bench) -> Round:
    run = bench.new_run("node-1")
    with pinned_lab("none") as lab:
        _train(bench, [train(bench, run, hosts_of(lab, 1, bench.folder))])
    figures = step_figures(steps_by_rank(run), WARM_UP_STEPS)
    return {ALONE: figures | {"tokens_per_core_s": figures["tokens_per_s"]}}


def measure_beside(bench: Bench) -> Round:
    runs = [bench.new_run(f"node-{number}") for number in range(1, NODES + 1)]
    with pinned_lab("none") as lab:
        commands = [
            train(bench, run, hosts_of(lab, number, bench.folder))
            for number, run in enumerate(runs, 1)
        ]
        _train(bench, commands)
    leads = [steps_by_rank(run)[0] for run in runs]
    tokens_per_s = common_tokens_per_s(leads, WARM_UP_STEPS)
    return {BESIDE: {"tokens_per_s": tokens_per_s, "tokens_per_core_s": tokens_per_s / NODES}}


def measure_together(variant: str, bench: Bench) -> Round:
    run = bench.new_run("nodes")
    with pinned_lab(RATES[variant]) as lab:
        _train(bench, [train(bench, run, lab.hosts)])
    ranks = steps_by_rank(run)
    figures = step_figures(ranks, WARM_UP_STEPS)
    sent = [step.done.traffic_bytes.get("sent", 0.0) for step in ranks[0][WARM_UP_STEPS:]]
    return {
        variant: figures
        | {
            "tokens_per_core_s": figures["tokens_per_s"] / NODES,
            "sent_bytes": sum(sent) / len(sent),
        }
    }


@contextmanager
def pinned_lab(rate: str, nodes: int = NODES) -> Iterator[Lab]:
    """Creates nodes, with everything that runs on one of them on one core.

    The core is the node's own, unless there are fewer cores than nodes.
    """
    name = f"scale-{os.getpid() % 10000}"
    try:
        lab = Lab.up(name, nodes, rate)
        cores = sorted(os.sched_getaffinity(0))
        for node, core in zip(lab.nodes, cycle(cores), strict=False):
            for process in processes(node.namespace):  # whatever they start inherits it
                os.sched_setaffinity(process.pid, {core})
        yield lab
    finally:
        remove_lab(name)


def hosts_of(lab: Lab, number: int, folder: Path) -> Path:
    """Writes a host list with one node of the lab."""
    listed = tomllib.loads(lab.hosts.read_text(encoding="utf-8"))
    listed["hosts"] = [listed["hosts"][number - 1]]
    listed["ssh_config"] = str(lab.ssh_config)
    path = folder / f"hosts-{number}.toml"
    path.write_text(tomli_w.dumps(listed), encoding="utf-8")
    return path


def train(bench: Bench, run: RunDir, hosts: Path) -> str:
    """Returns the shell command that trains the shipped recipe on these hosts."""
    overrides = {"training.steps": WARM_UP_STEPS + SMALL_STEPS * bench.steps}
    options = ["--hosts", str(hosts), "--skip-check", *set_options(overrides)]
    return shlex.join(train_command(bench.shipped_recipe, run.root, *options))


def _train(bench: Bench, commands: list[str]) -> None:
    """Runs the commands beside each other; fails if the first of them does."""
    line = "; ".join([" & ".join(reversed(commands)), "code=$?", "wait", "exit $code"])
    output = bench.folder / "nodes.log"
    run_watched(["sh", "-c", line], output, LIMIT_S, threads_of(1) | own_source())


SECTION = Section(
    "Nodes of a lab, one core each",
    (
        Column("tokens_per_s", "target tokens/s", ",.0f"),
        Column("tokens_per_core_s", "efficiency (target tokens/s a core)", ",.0f"),
        Column("step_s", "step, s", ".2f"),
        Column("exposed_s", "exposed communication, ms", ".0f", 1e3),
        Column("sent_bytes", "sent by a node, MB a step", ".1f", 1e-6),
        Column("tokens_per_step", "target tokens a step", ",.0f"),
    ),
    [
        *((variant, ALONE) for variant in (BESIDE, *RATES)),
        *((variant, BESIDE) for variant in RATES),
    ],
    [measure_alone, measure_beside, *(partial(measure_together, variant) for variant in RATES)],
)
