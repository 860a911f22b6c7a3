"""Real runs in a lab, each with known trouble: does the whole report tell the truth?

    sudo python benchmarks/truth.py [--only WORDS] [--keep FOLDER | --judge FOLDER]

Each world is a training run on 1 to 4 hosts of a lab with something wrong, written down before it
is run. What happened is computed a second time from the raw events, on the one clock that all hosts
of a lab share, without any code of the diagnosis. Then `dragoman report` writes the report, and the
report is judged: verdict, hosts, shares within 5 points, since when, advice, contradictions.

With --keep the folders of the runs are left in FOLDER. With --judge they are judged again, with
reports by the present code, and nothing is run.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from truth_lab.do_run import CannotRunError, do_run, prepare, report
from truth_lab.judge import Judgment, judge
from truth_lab.world import World
from truth_lab.worlds import NOT_HERE, WORLDS

TRIES = 2
"""Of a world: on a busy machine something else than the injected trouble may take the time."""


def main() -> None:
    arguments = _arguments()
    worlds = [world for world in WORLDS if arguments.only in world.name]
    print(f"machine: {platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}")
    print(f"{len(worlds)} worlds", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.judge:
            judgments = _judge_again(worlds, Path(arguments.judge).resolve())
        else:
            folder = Path(arguments.keep or temporary).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            judgments = _run_all(worlds, folder)
    print()
    for reason in NOT_HERE:
        print(f"skipped: {reason}")
    _print_table(judgments)
    print(f"\n{time.monotonic() - begun:.0f} s")
    sys.exit(0 if all(not judgment.faults for judgment in judgments) else 3)


def folder_of(world: World, home: Path) -> Path:
    return home / world.name.replace(",", "").replace(" ", "-")


def _run_all(worlds: list[World], home: Path) -> list[Judgment]:
    recipe = prepare(home)
    found = []
    for world in worlds:
        begun = time.monotonic()
        try:
            judgment = _run(world, recipe, folder_of(world, home))
        except CannotRunError as reason:
            print(f"skipped: {world.name}: {reason}", flush=True)
            continue
        took_s = time.monotonic() - begun
        print(f"{took_s:4.0f} s  {world.name}: {judgment.in_short}", flush=True)
        found.append(judgment)
    return found


def _run(world: World, recipe: Path, folder: Path) -> Judgment:
    judgment = None
    for _ in range(TRIES):
        try:
            do_run(world, recipe, folder)
        except RuntimeError as error:
            print(f"       {error}", flush=True)
            continue
        report(folder)
        judgment = judge(world, folder)
        if judgment.truths_agree:
            break
    if judgment is None:
        raise CannotRunError(f"its run failed {TRIES} times")
    return judgment


def _judge_again(worlds: list[World], home: Path) -> list[Judgment]:
    found = []
    for world in worlds:
        folder = folder_of(world, home)
        if not (folder / "truth.json").exists():
            print(f"skipped: {world.name}: there is no run of it in {home}", flush=True)
            continue
        report(folder)
        found.append(judge(world, folder))
    return found


def _print_table(judgments: list[Judgment]) -> None:
    header = ("world", "truth", "verdict", "hosts", "network, true/said", "straggling, true/said")
    print("\n| " + " | ".join((*header, "what is wrong")) + " |")
    print("|" + "---|" * (len(header) + 1))
    for one in judgments:
        print("| " + " | ".join(one.cells) + " |")
    counted = [one for one in judgments if one.truths_agree]
    main_right = sum(one.is_right_in_the_main for one in counted)
    whole_right = sum(not one.faults for one in counted)
    print(f"\nmain verdict and hosts right: {main_right} of {len(counted)}")
    print(f"whole reports right: {whole_right} of {len(counted)}")
    if disturbed := len(judgments) - len(counted):
        print(f"not counted, because the machine had other things to do: {disturbed}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--keep", help="leave the runs in this folder")
    parser.add_argument("--judge", help="judge the runs in this folder again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
