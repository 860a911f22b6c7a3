"""What each `[sync] mode` costs in translation quality, and what it saves in time on slow links.

    python benchmarks/sync.py --data FOLDER [--only quality|time] [--keep FOLDER]

FOLDER holds Multi30k, as recipes/multi30k.toml expects it. For quality, each variant trains the
same model on workers of this machine to the same number of tokens, with several seeds, and
translates the validation and the test set. For time, each variant trains a larger model for some
windows on the nodes of a lab, which needs root. With --keep, what is finished stays in that folder,
and the same command goes on where it was ended. Prints Markdown tables; nothing is asserted.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from scaling_bench.nodes import obstacle
from sync_bench.figures import WARM_UP_STEPS
from sync_bench.quality import Quality, Run, Scored
from sync_bench.results import Results
from sync_bench.tables import difference_table, quality_table, time_table
from sync_bench.timing import Place, Timed, Timing
from sync_bench.variants import (
    BASE,
    VARIANTS,
    Overrides,
    as_texts,
    chosen_variants,
    has_exact_sums,
    parse_change,
    parse_variant,
    refusal,
)
from train_bench.candidates import measure_gemm
from train_bench.ending import closing_line, ended_early_or_not
from train_bench.measurement import mean_of
from train_bench.tables import spread
from train_bench.task import THREADS
from train_bench.watch import CandidateError

from dragoman.errors import DragomanError
from dragoman.lab.rates import parse_rate

SECTIONS = ("quality", "time")


def main() -> None:
    options = _arguments()
    begun = time.monotonic()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        data = options.data.resolve()
        quality = Quality(data, folder, options.steps, options.beam, dict(options.set))
        bench = Bench(options, folder, Results(folder / "results"), failures)
        scored: dict[Run, Scored] = {}
        rounds: list[dict[tuple[str, Place], Timed]] = []
        processors: list[float] = []
        with ended_early_or_not():
            if "quality" in options.only:
                bench.train(quality, scored)
            if "time" in options.only:
                bench.time(Timing(data, folder, options.timed_steps), rounds, processors)
        report = [
            *quality_report(scored, quality, options.ranks),
            *time_report([one for one in rounds if one], processors),
        ]
        if failures:
            report += ["### Not measured", "\n".join(f"- {one}" for one in dict.fromkeys(failures))]
        lengths = {
            "quality": f"quality after {options.steps:,} updates",
            "time": f"time in {options.rounds} rounds of {options.timed_steps} updates or more "
            f"after {WARM_UP_STEPS} steps or more for warm-up, both in whole windows",
        }
        measured = "; ".join(lengths[name] for name in SECTIONS if name in options.only)
        report.append(closing_line(measured, begun, "one thread for each worker"))
        text = "\n\n".join(report)
        (folder / "report.md").write_text(f"{text}\n", encoding="utf-8")
    print(f"\n{text}")


class Bench:
    """The order in which everything is measured. What fails is listed, and the rest goes on."""

    def __init__(
        self, options: argparse.Namespace, folder: Path, results: Results, failures: list[str]
    ) -> None:
        self._options, self._folder = options, folder
        self._results, self._failures = results, failures

    def train(self, quality: Quality, scored: dict[Run, Scored]) -> None:
        """Adds finished runs to `scored`, so that what is there counts if it is ended early.

        All variants of a seed come before the next seed, so that they can be compared early.
        """
        variants = self._accepted(quality.recipe, quality.overrides({}, seed=1))
        for seed in self._options.seeds:
            for ranks in self._options.ranks:
                for name, variant in variants.items():
                    # Exact sums train the same model whatever the number of workers.
                    trained_by = self._options.ranks[0] if has_exact_sums(variant) else ranks
                    run = Run(name, trained_by, seed)
                    begun = time.monotonic()
                    try:
                        measured = self._results.find_or_measure(
                            run.title,
                            quality.settings(run, variant),
                            partial(quality.train, run, variant),
                        )
                    except (CandidateError, DragomanError) as error:
                        self._failures.append(f"{run.title}: {error}")
                        continue
                    found = scored[run._replace(ranks=ranks)] = quality.scored(measured)
                    self._print(run.title, f"validation loss {found.validation_loss:.3f}", begun)

    def time(
        self,
        timing: Timing,
        rounds: list[dict[tuple[str, Place], Timed]],
        processors: list[float],
    ) -> None:
        """Adds a round at a time; every second one goes through the variants in reverse."""
        if why := obstacle():
            self._failures.append(f"Time on lab nodes is skipped: {why}")
            return
        variants = self._accepted(timing.recipe, {})
        places = [
            Place(ranks, link) for ranks in self._options.ranks for link in self._options.links
        ]
        order = [(name, place) for place in places for name in variants]
        for number in range(1, self._options.rounds + 1):
            rounds.append({})
            before = measure_gemm(Path(sys.executable), self._folder)
            for name, place in order if number % 2 else reversed(order):
                variant = variants[name]
                title = f"time-{name}-ranks-{place.ranks}-{place.link}-round-{number}"
                begun = time.monotonic()
                try:
                    measured = self._results.find_or_measure(
                        title,
                        timing.settings(place, variant, number),
                        partial(timing.measure, place, variant),
                    )
                except (CandidateError, DragomanError, ValueError) as error:
                    self._failures.append(f"{title}: {error}")
                    continue
                rounds[-1][name, place] = Timed(**measured)
                token_ms = 1e3 * measured["figures"]["token_s"]
                self._print(title, f"{token_ms:.3f} ms a target token", begun)
            gemm = mean_of(before, measure_gemm(Path(sys.executable), self._folder))
            processors.append(gemm.processors)

    def _accepted(self, recipe: Path, fixed: Overrides) -> dict[str, Overrides]:
        """Returns the variants that can be trained; the others are listed as not measured."""
        accepted = {}
        for name, variant in self._options.chosen.items():
            if why := refusal(recipe, {**fixed, **variant}):
                self._failures.append(f"{name}: {why}")
            else:
                accepted[name] = variant
        return accepted

    def _print(self, title: str, figure: str, begun: float) -> None:
        print(f"{title}: {figure} ({time.monotonic() - begun:.0f} s)", flush=True)


def quality_report(
    scored: Mapping[Run, Scored], quality: Quality, all_ranks: Sequence[int]
) -> list[str]:
    """Returns tables for each number of workers, and what is needed to read them."""
    sections = []
    for ranks in all_ranks:
        if any(run.ranks == ranks for run in scored):
            sections += [
                f"### Quality, {ranks} workers",
                quality_table(scored, ranks),
                difference_table(scored, ranks),
            ]
    if sections:
        changed = "".join(f", {change}" for change in as_texts(quality.changes))
        sections.append(
            f"{quality.recipe.name} without a moving average of the weights, {quality.steps:,} "
            f"updates{changed}; validation loss per target token at the end, mean over the seeds "
            "(lowest to highest). BLEU is sacreBLEU's on detokenized text with the last weights, "
            f"beam {quality.beam}, mean over the seeds (95 % interval of 1,000 draws of "
            "sentences). Differences: both held-out sets as one, paired bootstrap resampling, in "
            "which each draw takes the same sentences of all seeds of both variants. Interval and "
            "p are about the choice of sentences; what another seed would change shows in the last "
            "column."
        )
    return [section for section in sections if section]


def time_report(
    rounds: Sequence[Mapping[tuple[str, Place], Timed]], processors: Sequence[float]
) -> list[str]:
    """Returns a table for each place, and what is needed to read it."""
    sections = []
    for place in dict.fromkeys(place for one in rounds for _, place in one):
        link = place.link.replace("bit", "bit/s")
        sections += [f"### Time, {place.ranks} lab nodes, {link}", time_table(rounds, place)]
    if sections:
        sections.append(
            "Median over the rounds (lowest to highest), ratios within a round. An update is one "
            "of the recipe, of which a step of `accumulate` has several. Exposed is what the rank "
            "that waits the least waits for others' gradients or weights. Bytes are those that the "
            "kernel counted on the link, and those of the formula with packet headers; both are "
            "sums over whole windows."
        )
    if sections and processors:
        sections.append(
            f"Products of matrices with {THREADS} threads had {spread(processors, '.2f')} "
            "processors, before and after each round; with fewer, other programs disturbed it."
        )
    return sections


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="Multi30k")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=list(VARIANTS),
        default=list(VARIANTS),
        metavar="NAME",
        help=f"beside {BASE}, which is always there; of {', '.join(VARIANTS)}",
    )
    parser.add_argument(
        "--add",
        nargs="+",
        type=_variant,
        default=[],
        metavar="NAME:KEY=VALUE,...",
        help="variants of your own, in keys of [sync], such as short:mode=local,local_steps=4",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        type=_change,
        default=[],
        metavar="KEY=VALUE",
        help="for quality: changes of the recipe in all variants, such as schedule.peak=0.01",
    )
    parser.add_argument("--ranks", nargs="+", type=_at_least_two, default=[2, 4])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=_positive, default=1500, help="updates, for quality")
    parser.add_argument("--beam", type=_positive, help="by default that of the recipe")
    parser.add_argument("--links", nargs="+", type=_link, default=["10mbit", "100mbit", "1gbit"])
    parser.add_argument("--rounds", type=_positive, default=3, help="for time")
    parser.add_argument(
        "--timed-steps", type=_positive, default=12, help="counted at least, for time"
    )
    parser.add_argument("--keep", help="leave results in this folder, and go on with those in it")
    options = parser.parse_args()
    options.chosen = chosen_variants(options.variants, dict(options.add))
    return options


def _change(text: str) -> tuple[str, str]:
    try:
        return parse_change(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _variant(text: str) -> tuple[str, Overrides]:
    try:
        return parse_variant(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _link(text: str) -> str:
    try:
        parse_rate(text)
    except DragomanError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _positive(word: str) -> int:
    return _at_least(1, word)


def _at_least_two(word: str) -> int:
    return _at_least(2, word)


def _at_least(least: int, word: str) -> int:
    if (number := int(word)) < least:
        raise argparse.ArgumentTypeError(f"{number} is below {least}")
    return number


if __name__ == "__main__":
    main()
