"""Forecasts made before a run against what its steps then took, on the nodes of a lab.

    python benchmarks/plan.py [--by check|assume] [--keep FOLDER] [--only TEXT ...]

Each combination of model, nodes, link and sync mode is checked and then trained for some windows
of steps in the same lab, with one core a node as far as there are enough. Its step is forecast
twice: from the check, and from the cluster in words, with the speed that a worker of this machine
reaches. Needs root. With --keep, what is finished stays in that folder, and the same command goes
on where it was ended. Prints Markdown; nothing is asserted.
"""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

from plan_bench.combinations import COMBINATIONS, Combination
from plan_bench.measure import Measurement, Measuring, Outcome
from plan_bench.tables import summary, table
from scaling_bench.nodes import obstacle
from sync_bench.results import Results
from train_bench.ending import closing_line, ended_early_or_not
from train_bench.watch import CandidateError

from dragoman.errors import DragomanError

CALIBRATIONS = ("check", "assume")


def main() -> None:
    options = _arguments()
    if why := obstacle():
        raise SystemExit(f"Forecasts are compared on lab nodes: {why}")
    begun = time.monotonic()
    failures: list[str] = []
    found: dict[str, dict[Combination, Outcome]] = {name: {} for name in options.by}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        measuring = Measuring(folder, options.steps)
        results = Results(folder / "results")
        with ended_early_or_not():
            for number in range(1, options.rounds + 1):
                order = options.chosen if number % 2 else [*reversed(options.chosen)]
                for one in order:
                    measured = _measured(measuring, results, one, number, failures)
                    for by in options.by if measured else ():
                        found[by][one] = measuring.outcome(one, measured, by)
                        print(_line(found[by][one], by), flush=True)
        report = []
        for calibration, outcomes in found.items():
            if outcomes:
                report += [
                    f"### Calibrated by {calibration}",
                    table(outcomes),
                    summary(outcomes, calibration),
                ]
        if failures:
            report += ["### Not measured", "\n".join(f"- {one}" for one in dict.fromkeys(failures))]
        lengths = f"at least {options.steps} updates after the warm-up, in whole windows"
        report.append(closing_line(lengths, begun, "one thread for each worker"))
        text = "\n\n".join(report)
        (folder / "report.md").write_text(f"{text}\n", encoding="utf-8")
    print(f"\n{text}")


def _measured(
    measuring: Measuring,
    results: Results,
    combination: Combination,
    number: int,
    failures: list[str],
) -> Measurement | None:
    title = f"plan-{combination.title}-round-{number}"
    begun = time.monotonic()
    try:
        measured = results.find_or_measure(
            title,
            measuring.settings(combination, number),
            partial(measuring.measure, combination),
        )
    except (CandidateError, DragomanError, ValueError) as error:
        failures.append(f"{title}: {error}")
        print(f"{title}: {error}", flush=True)
        return None
    print(f"{title} ({time.monotonic() - begun:.0f} s)", flush=True)
    return Measurement(**measured)


def _line(outcome: Outcome, calibration: str) -> str:
    return (
        f"    by {calibration}: forecast {outcome.forecast_s:.3f} s, measured "
        f"{outcome.measured_s:.3f} s, error {outcome.error:+.1%}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--by", nargs="+", choices=CALIBRATIONS, default=CALIBRATIONS)
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="combinations with one of these texts in their name, such as tiny-2 or local",
    )
    parser.add_argument("--steps", type=int, default=12, help="counted at least")
    parser.add_argument("--rounds", type=int, default=1, help="every second one in reverse")
    parser.add_argument("--keep", help="leave results in this folder, and go on with those in it")
    options = parser.parse_args()
    options.chosen = [
        one for one in COMBINATIONS if any(text in one.title for text in options.only)
    ]
    if not options.chosen:
        parser.error(f"--only {' '.join(options.only)} names no combination")
    return options


if __name__ == "__main__":
    main()
