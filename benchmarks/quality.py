"""Translation quality by training minute: the shipped recipe beside a plain Hugging Face loop.

    python benchmarks/quality.py --data FOLDER [--only NAME] [--keep FOLDER]

FOLDER holds Multi30k, as recipes/multi30k.toml expects it. `dragoman train` with that recipe and a
plain loop around MarianMTModel train in turns of some seconds, one at a time, on the same pieces
with the same model shape. Prints the training minutes to levels of validation BLEU, the curves, and
the scores of both on the test set, each of which is translated once. Nothing is asserted.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from quality_bench.candidates import (
    HUGGING_FACE,
    NAMES,
    OURS,
    loop_candidate,
    our_candidate,
    read_lines,
    read_loop_log,
    read_run,
    translate_with_loop,
    translate_with_run,
)
from quality_bench.curve import LEVELS, Limits, Record, curve_of, reason_to_end, spent_by
from quality_bench.scoring import PUBLISHED_FORM, moses_tokens, plain_score, published_score
from quality_bench.tables import Result, curve_table, level_table, score_table, time_table
from quality_bench.task import (
    BEAM,
    CLIP_NORM,
    LOOP_DROPOUT,
    PEAK_RATE,
    WARM_UP_STEPS,
    Task,
    differences,
    renamed_sources,
    write_loop_job,
    write_task,
)
from quality_bench.turns import Candidate, TurnClock, take_turns
from train_bench.ending import closing_line, ended_early_or_not
from train_bench.environments import RECIPES, VENVS, environment
from train_bench.task import THREADS
from train_bench.watch import CandidateError, tail

from dragoman.config import load_config

ROOT = Path(__file__).parents[1]
LONGEST_TURN_S = 50.0
"""With several workers: after 60 s without a heartbeat, stopped or not, they give each other up."""


class Bench:
    """The candidates of one run of the benchmark, and what is known of each so far."""

    def __init__(self, task: Task, folder: Path, options: argparse.Namespace) -> None:
        self.task, self.folder, self.options = task, folder, options
        self.results: dict[str, Result] = {}
        self._run = folder / "run"
        self._limits = Limits(LEVELS[-1], options.limit_minutes, options.patience_minutes)
        self._asked_because = ""
        self._python: dict[str, Path] = {
            name: _python(name, options.venvs)
            for name in ("moses", *(["loops"] if HUGGING_FACE in options.only else []))
        }
        scratch = folder / HUGGING_FACE
        scratch.mkdir(exist_ok=True)
        self._log = scratch / "log.jsonl"
        self._log.unlink(missing_ok=True)  # of a benchmark before, in a folder that was kept
        self._job = write_loop_job(
            task,
            THREADS,
            options.evaluate_every,
            scratch,
            options.loop_rate,
            options.loop_dropout,
        )

    def train(self) -> None:
        """Trains all candidates in turns, to their ends."""
        candidates = []
        if OURS in self.options.only:
            candidates.append(our_candidate(self.task, self._run, self.options.workers, THREADS))
        if HUGGING_FACE in self.options.only:
            candidates.append(loop_candidate(self._python["loops"], self._job, THREADS))
        try:
            take_turns(candidates, self.options.turn_s, self._after_turn)
        except KeyboardInterrupt:
            for candidate in candidates:
                self._note(candidate)
            raise

    def score_test_set(self) -> None:
        """Translates the test set once with each candidate's best weights, and scores it."""
        language = self.task.config.data.target_language
        references = read_lines(self.task.text("test", "target"))
        tokens = moses_tokens(self._python["moses"], references, language)
        for name, result in self.results.items():
            print(f"{NAMES[name]}: translating the test set", flush=True)
            try:
                translations = self._translate(name)
            except CandidateError as error:
                print(f"{NAMES[name]}: no translations of the test set: {error}", flush=True)
                continue
            in_tokens = moses_tokens(self._python["moses"], translations, language)
            self.results[name] = result._replace(
                plain=plain_score(translations, references, language),
                published=published_score(in_tokens, tokens),
            )

    def _translate(self, name: str) -> list[str]:
        if name == OURS:
            return translate_with_run(self.task, self._run, THREADS)
        return translate_with_loop(self._python["loops"], self._job, THREADS)

    def _after_turn(self, candidate: Candidate) -> None:
        before = self.results.get(candidate.name)
        result = self._note(candidate)
        for point in result.points[len(before.points) if before else 0 :]:
            print(
                f"{NAMES[candidate.name]}: {point.bleu:.2f} BLEU after {point.minutes:.1f} "
                f"minutes, step {point.step:,}",
                flush=True,
            )
        if candidate.exit_code is not None:
            print(f"{NAMES[candidate.name]} ended: {result.ended}", flush=True)
        elif candidate.name == HUGGING_FACE and not self._asked_because:
            reason = reason_to_end(result.points, result.spent.training, self._limits)
            if reason:
                self._asked_because = reason
                candidate.ask_to_end()

    def _note(self, candidate: Candidate) -> Result:
        """Reads what a candidate has recorded so far into `results`."""
        record = self._record(candidate.name)
        clock = TurnClock(candidate.turns)
        points = curve_of(record, clock, candidate.usage)
        spent = spent_by(record, clock, candidate.usage)
        result = Result(points, spent, self._ending(candidate))
        self.results[candidate.name] = result
        (self.folder / f"{candidate.name}.json").write_text(
            json.dumps(
                {
                    "points": [point._asdict() for point in points],
                    "minutes": spent._asdict(),
                    "turns": [turn._asdict() for turn in candidate.turns],
                    "ended": result.ended,
                },
                indent=1,
            )
        )
        return result

    def _record(self, name: str) -> Record:
        return read_run(self._run) if name == OURS else read_loop_log(self._log)

    def _ending(self, candidate: Candidate) -> str:
        code = candidate.exit_code
        if code is None or candidate.was_cut_off:
            return "the benchmark was ended before it"
        if code:
            return f"exit code {code}: {tail(candidate.output)}"
        done = "the steps of its recipe were done"
        return self._asked_because if candidate.name == HUGGING_FACE else done


def main() -> None:
    options = _arguments()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        if (folder / "run").exists():
            sys.exit(f"{folder / 'run'}: a run is there already; name another folder with --keep")
        task = write_task(options.recipe, _overrides(options), folder / "task")
        bench = Bench(task, folder, options)
        with ended_early_or_not():
            bench.train()
            bench.score_test_set()
        report = report_of(task, bench.results, options)
        measured = f"turns of {options.turn_s:g} s"
        report += f"\n\n{closing_line(measured, begun, f'{THREADS} threads')}"
        (folder / "report.md").write_text(f"{report}\n")
    print(f"\n{report}")


def report_of(task: Task, results: dict[str, Result], options: argparse.Namespace) -> str:
    """Returns tables and the sentences that are needed to read them."""
    config = task.config
    names = f"{config.data.source_language} to {config.data.target_language}"
    only_ours = differences(config)
    sections = [
        f"### Minutes to validation BLEU, {names}",
        level_table(results),
        "Training minutes are those of the steps, in a candidate's own turns; evaluations, saving "
        "and the start are not in them. BLEU is sacreBLEU's, on detokenized text of all "
        "validation sentences, with greedy search; between two evaluations it is interpolated.",
        "### Time",
        time_table(results),
        *(f"{NAMES[name]} ended: {result.ended}." for name, result in results.items()),
        "### Test set",
        score_table(results),
        f"Best weights by validation BLEU, beam {BEAM}, translated once; in parentheses the 95 % "
        f"interval of 1,000 bootstrap draws. The published form is {PUBLISHED_FORM}.",
        *(
            f"{NAMES[name]}: {result.plain.signature}; published form {result.published.signature}."
            for name, result in results.items()
            if result.plain and result.published
        ),
        "### What the two have in common, and what not",
        f"The same pairs and {config.tokenizer.vocabulary:,} pieces, {config.model.encoder_layers} "
        f"+ {config.model.decoder_layers} layers, width {config.model.width}, "
        f"{config.model.heads} heads, filter {config.model.filter}, label smoothing "
        f"{config.training.label_smoothing:g}, "
        f"{config.training.tokens_per_update:,} target tokens an update on average, seed "
        f"{config.training.seed}, {THREADS} threads ({options.workers} worker(s) of ours). "
        f"Our model has {task.parameters:,} parameters and is pre-norm, without biases in "
        f"attention, with dropout {config.model.dropout:g}; Marian is post-norm, with biases and "
        f"dropout {options.loop_dropout:g}. The loop: one length-bucketed batch an "
        f"update, fused AdamW with the recipe's betas, rate rising to {options.loop_rate:g} in "
        f"{WARM_UP_STEPS} steps, then falling with the inverse square root, gradients clipped at "
        f"{CLIP_NORM:g}, sdpa, evaluated every {options.evaluate_every} steps.",
        f"The recipe has, and the loop has not: {'; '.join(only_ours) or 'nothing'}.",
    ]
    for name, result in results.items():
        sections += [f"### Curve: {NAMES[name]}", curve_table(result.points)]
    return "\n\n".join(sections)


def _overrides(options: argparse.Namespace) -> list[str]:
    fixed = [
        f"data.folder={options.data.resolve()}",
        "evaluation.translate_sentences=0",
        "evaluation.beam=1",
    ]
    if options.seed is not None:
        fixed.append(f"training.seed={options.seed}")
    fixed += renamed_sources(
        load_config(options.recipe, fixed),
        options.source_language,
        options.target_language,
        options.test,
    )
    return fixed + options.set


def _python(name: str, venvs: Path) -> Path:
    found = environment(name, venvs)
    return found.python or sys.exit(f"{RECIPES[name].package} does not install: {found.remark}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="Multi30k")
    parser.add_argument("--recipe", default=str(ROOT / "recipes" / "multi30k.toml"))
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override, as of our train"
    )
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--workers", type=int, default=1, help="of ours; they share the threads")
    parser.add_argument("--seed", type=int, help="of both; by default that of the recipe")
    parser.add_argument("--source-language", default="", help="ending of the files to translate")
    parser.add_argument("--target-language", default="", help="ending of their translations")
    parser.add_argument("--test", default="", help="another test set, such as test_2017_flickr")
    parser.add_argument("--turn-s", type=float, default=20.0, help="seconds of a turn")
    parser.add_argument("--evaluate-every", type=int, default=250, help="steps of the plain loop")
    parser.add_argument("--loop-rate", type=float, default=PEAK_RATE, help="highest of the loop")
    parser.add_argument(
        "--loop-dropout", type=float, default=LOOP_DROPOUT, help="of the loop's residuals"
    )
    parser.add_argument(
        "--limit-minutes", type=float, default=60.0, help="training minutes of the plain loop"
    )
    parser.add_argument(
        "--patience-minutes",
        type=float,
        default=10.0,
        help="the plain loop ends when so many training minutes bring no new best",
    )
    parser.add_argument("--venvs", type=Path, default=VENVS, help="environments of other tools")
    parser.add_argument("--keep", help="leave the run, curves and translations in this folder")
    options = parser.parse_args()
    if options.workers > 1 and options.turn_s > LONGEST_TURN_S:
        parser.error(f"--turn-s above {LONGEST_TURN_S:g} needs --workers 1")
    return options


if __name__ == "__main__":
    main()
