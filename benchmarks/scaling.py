"""What training costs with more workers, hosts, steps, pairs, and with drawn subwords.

    python benchmarks/scaling.py --data FOLDER [--only NAMES] [--rounds N] [--steps N]

FOLDER holds Multi30k, as recipes/multi30k.toml expects it. Each section measures variants of one
run of `dragoman train`, one after the other in each round, and every second round in reverse.
Ratios are taken within a round. The section with nodes needs root, for a lab. Prints Markdown
tables; nothing is asserted.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from scaling_bench import corpus_size, long_run, nodes, subwords, workers
from scaling_bench.bench import WARM_UP_STEPS, Bench
from scaling_bench.tables import Round, Section, figure_table, ratio_table
from train_bench.candidates import measure_gemm
from train_bench.ending import closing_line, ended_early_or_not
from train_bench.measurement import mean_of
from train_bench.tables import spread
from train_bench.task import THREADS
from train_bench.watch import CandidateError

from dragoman.errors import DragomanError

NAMES = ("workers", "nodes", "long-run", "corpus", "subwords")
FEWEST_LONG_STEPS = 60


def main() -> None:
    options = _arguments()
    begun = time.monotonic()
    sections = {
        "workers": workers.SECTION,
        "nodes": nodes.SECTION,
        "long-run": long_run.section(options.long_steps),
        "corpus": corpus_size.section(options.pairs),
        "subwords": subwords.SECTION,
    }
    chosen = {name: sections[name] for name in NAMES if name in options.only}
    failures: list[str] = []
    if "nodes" in chosen and (why := nodes.obstacle()):
        failures.append(f"{chosen.pop('nodes').title} are skipped: {why}")
    rounds: dict[str, list[dict[str, Mapping[str, float]]]] = {name: [] for name in chosen}
    processors: dict[str, list[float]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(options.data.resolve(), folder, options.steps, options.long_steps)
        with ended_early_or_not():
            for number in range(options.rounds):
                for name, section in chosen.items():
                    print(f"round {number + 1} of {options.rounds}: {section.title}", flush=True)
                    rounds[name].append({})
                    before = measure_gemm(Path(sys.executable), folder)
                    take_round(section, bench, number, rounds[name][-1], failures)
                    gemm = mean_of(before, measure_gemm(Path(sys.executable), folder))
                    processors[name].append(gemm.processors)
    for name, section in chosen.items():
        if any(rounds[name]):
            print_section(section, [one for one in rounds[name] if one], processors[name])
    if failures:
        print("\n### Not measured\n")
        print("\n".join(f"- {failure}" for failure in dict.fromkeys(failures)))
    measured = f"{options.rounds} rounds of {options.steps} steps after {WARM_UP_STEPS} for warm-up"
    print(f"\n{closing_line(measured, begun, 'as many threads as each variant says')}")


def take_round(
    section: Section,
    bench: Bench,
    number: int,
    measured: dict[str, Mapping[str, float]],
    failures: list[str],
) -> None:
    """Adds to `measured`, variant by variant, so that what is there counts if it is ended early."""
    parts = section.parts if number % 2 == 0 else list(reversed(section.parts))
    for part in parts:
        begun = time.monotonic()
        try:
            one = part(bench)
        except (CandidateError, DragomanError, ValueError) as error:
            failures.append(f"{section.title}: a variant did not run: {error}")
            continue
        measured.update(one)
        for variant, figures in one.items():
            first = section.columns[0]
            value = format(first.scale * figures[first.figure], first.shown)
            took_s = time.monotonic() - begun
            print(f"  {variant}: {first.title} {value} ({took_s:.0f} s)", flush=True)


def print_section(section: Section, rounds: list[Round], processors: list[float]) -> None:
    print(f"\n### {section.title}\n")
    print(figure_table(section, rounds))
    print("\nRatios within a round, median (lowest to highest):\n")
    print(ratio_table(section, rounds))
    if processors:
        print(
            f"\nProducts of matrices with {THREADS} threads had {spread(processors, '.2f')} "
            f"processors, before and after each round; with fewer, other programs disturbed it."
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="Multi30k")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--steps",
        type=_positive,
        default=12,
        help="counted in each run of the larger model; small models take several times as many",
    )
    parser.add_argument("--long-steps", type=_long, default=5000, help="of the long run")
    parser.add_argument(
        "--pairs",
        type=_positive,
        nargs="+",
        default=[30_000, 300_000, 4_500_000],
        help="sizes of the corpora",
    )
    parser.add_argument("--only", type=_names, default=NAMES, help=f"some of {','.join(NAMES)}")
    parser.add_argument("--keep", help="leave recipes, corpora and the last runs in this folder")
    return parser.parse_args()


def _names(words: str) -> list[str]:
    names = words.split(",")
    if unknown := set(names) - set(NAMES):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(NAMES)}")
    return names


def _positive(word: str) -> int:
    if (number := int(word)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _long(word: str) -> int:
    if (number := int(word)) < FEWEST_LONG_STEPS:
        raise argparse.ArgumentTypeError(f"{number} is below {FEWEST_LONG_STEPS}")
    return number


if __name__ == "__main__":
    main()
