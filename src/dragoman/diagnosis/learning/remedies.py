"""What to do about learning that goes wrong or is not over: advice with commands for this run."""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path

from dragoman.config import PRESETS, Config, ModelSettings, TextSource
from dragoman.corpus.test_sets import sources_of_set
from dragoman.diagnosis.commands import (
    in_start_folder,
    limits_beyond,
    line_for,
    train_command,
    with_settings,
)
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.learning.kept import best_kept
from dragoman.diagnosis.learning.pace import round_below
from dragoman.diagnosis.learning.rate_level import lower_rate, rate_level_of, rate_setting
from dragoman.diagnosis.learning.repeated import repeated
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.intervals import interval_for
from dragoman.training.claim import incompatible_changes

_MORE_DROPOUT, _DROPOUT_STEP, _MOST_DROPOUT = 0.3, 0.1, 0.5
LARGEST_WIDTH = 512
"""Of the models that are advised where a smaller one does not learn its pairs."""
MOST_EVALUATING = 0.1
"""Of the steps' time: what more evaluations may take."""
WARM_UP_SHARE = 0.1
"""Of all steps: as usual for short trainings."""
_ADDRESS = "://"


def train_on(run: RunFacts, until_step: int, because: str) -> list[Advice]:
    """Returns how to train until this step; empty while the run goes on by itself, or would fail
    again where it failed before.

    Where training refuses to continue, as with another end of a cosine, it is a new run.
    """
    if not run.attempts or run.attempts[-1].state == "training":
        return []
    if _meets_its_fault_again(run):
        return []
    every = run.config.evaluation.every_steps
    until_step = math.ceil(until_step / every) * every
    raised = limits_beyond(run, until_step)
    if incompatible_changes(run.config, with_settings(run.config, raised)):
        what = f"Train a new run with a schedule that ends at step {until_step:,}"
    else:
        what = f"Continue training{_until(run.config, raised, until_step)}"
        if run.record.checkpoints:
            what += f", from the checkpoint of step {run.record.checkpoints[-1].step:,}"
        else:
            what += ", where this run has its checkpoints (there are none in this folder)"
    return [Advice(f"{what}: {because}.", train_command(run, raised))]


def _meets_its_fault_again(run: RunFacts) -> bool:
    """Returns whether the run would fail again, if it were continued as it is."""
    last = run.faults.unresumed
    return last is not None and (last.comes_again or last in repeated(run.faults.faults))


def _until(config: Config, raised: Mapping[str, object], until_step: int) -> str:
    """Returns where the run will end with these limits raised, as far as one can tell."""
    if "training.steps" in raised:
        return f" to step {until_step:,}"
    if raised:
        return f" to about step {until_step:,}"
    return f" to step {config.training.steps:,}" if config.training.steps else ""


def evaluate_more(run: RunFacts, least: int) -> list[Advice]:
    """Returns how to get more than `least` evaluations after the warm-up; empty: at most one will
    be missing, more would take too much of the time, or the run has hardly begun."""
    config = run.config
    done = int(run.steps["step"][-1]) if len(run.steps) else 0
    total = max(config.training.steps or 0, done) if not is_finished(run) else done
    every = config.evaluation.every_steps
    after_warm_up = max(0, total - config.schedule.warmup_steps)
    has_begun = done > max(config.schedule.warmup_steps, 2 * least)
    if not has_begun or after_warm_up // every >= least - 1 or _meets_its_fault_again(run):
        return []
    seconds = [evaluation.seconds for evaluation in run.evaluations]
    each_s = math.fsum(seconds) / len(seconds) if seconds else 0.0
    step_s = float(run.steps["step_s"].mean())
    dear = interval_for(each_s, step_s, MOST_EVALUATING)
    often = max(round_below(after_warm_up / (2 * least)), dear)
    if 2 * often > every:
        return []
    change: dict[str, object] = {"evaluation.every_steps": often}
    return [
        Advice(
            f"Evaluate more often, every {often:,} steps instead of every {every:,}: with fewer "
            f"than {least} evaluations after the warm-up nobody can tell how the model does.",
            line_for(run, "evaluation.every_steps", often)
            if is_finished(run)
            else train_command(run, change),
        )
    ]


def shorter_warm_up(run: RunFacts, planned: int) -> Advice:
    """Returns a warm-up of a tenth of the steps that are planned, with a rate that such a short one
    bears."""
    steps = max(1, round_below(planned * WARM_UP_SHARE))
    settings: dict[str, object] = {"schedule.warmup_steps": steps}
    if rate_level_of(with_settings(run.config, settings)).times_usual > 1:
        settings |= lower_rate(with_settings(run.config, settings))
    return Advice(
        f"Start a new run with a shorter warm-up, {steps:,} of its {planned:,} steps, or one with "
        "many more steps.",
        train_command(run, settings, new_run=True),
    )


def is_finished(run: RunFacts) -> bool:
    return bool(run.attempts) and run.attempts[-1].state == "finished"


def use_best(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to use the best checkpoint; empty: there is none to use."""
    best = best_kept(run)
    if best is None:
        return []
    folder = shlex.quote(str(run.record.directory.root))
    which = "best" if best.name == run.record.best_checkpoint else str(best.step)
    return [
        Advice(
            f"Translate with the checkpoint of step {best.step:,}: {because}.",
            f"dragoman translate {folder} --checkpoint {which}",
        )
    ]


def lower_the_rate(run: RunFacts, because: str) -> Advice:
    settings = lower_rate(run.config)
    if not run.config.optimizer.clip_norm:
        settings["optimizer.clip_norm"] = 1.0
    clipped = " and clipped gradients" if "optimizer.clip_norm" in settings else ""
    return Advice(
        f"Start a new run with a lower {rate_setting(run.config)}{clipped}: {because}.",
        train_command(run, settings, new_run=True),
    )


def another_precision(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to leave fp16, whose range is small; empty for other precisions."""
    if run.config.training.precision != "fp16":
        return []
    settings: dict[str, object] = {"training.precision": "bf16"}
    return [Advice(f"Start a new run with bf16: {because}.", train_command(run, settings, True))]


def more_dropout(run: RunFacts, because: str) -> Advice:
    now = run.config.model.dropout
    more = round(min(_MOST_DROPOUT, max(_MORE_DROPOUT, now + _DROPOUT_STEP)), 2)
    return Advice(
        f"For a better model add training pairs, or start a new run with more dropout: {because}.",
        train_command(run, {"model.dropout": max(now, more)}, new_run=True),
    )


def larger_model(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to take the next larger shape; empty: there is none."""
    shape = _next_larger(run.config)
    if shape is None:
        return []
    settings = {f"model.{key}": value for key, value in shape.items()}
    return [
        Advice(
            f"Start a new run with a larger model ({shape['preset']}): {because}.",
            train_command(run, settings, new_run=True),
        )
    ]


def less_memory(run: RunFacts, because: str) -> list[Advice]:
    """Returns what helps where not even a single pair fits into memory."""
    longest = max(1, run.config.data.max_length // 2)
    shorter = Advice(
        f"Start a new run without pairs of more than {longest:,} pieces, half of what "
        f"data.max_length allows now: {because}.",
        train_command(run, {"data.max_length": longest}, new_run=True),
    )
    shape = _next_smaller(run.config)
    if shape is None:
        return [shorter]
    settings = {f"model.{key}": value for key, value in shape.items()}
    smaller = Advice(
        f"Or start a new run with a smaller model ({shape['preset']}), or on devices with more "
        "memory.",
        train_command(run, settings, new_run=True),
    )
    return [shorter, smaller]


def inspect_pairs(run: RunFacts, because: str) -> Advice:
    """Returns how to see some training pairs side by side, or those that cleaning dropped."""
    data = run.config.data
    source = data.train[0]
    command = ""
    if isinstance(source, TextSource):
        sides = [_shown(name, data.folder) for name in (source.source, source.target)]
        if all(sides):
            command = in_start_folder(run, f"paste {' '.join(sides)} | shuf -n 10")
    if command:
        return Advice(f"See whether lines of both sides belong together: {because}.", command)
    return Advice(
        f"See what kinds of pairs cleaning drops: {because}.",
        _explain_cleaning(run),
    )


def find_leak(run: RunFacts, split: str, because: str) -> Advice:
    """Returns how to count the sentences of test or validation that are in the training set."""
    data = run.config.data
    train, held_out = data.train[0], (sources_of_set(data, split) or data.validation)[0]
    if isinstance(train, TextSource) and isinstance(held_out, TextSource):
        patterns, text = _shown(held_out.source, data.folder), _shown(train.source, data.folder)
        if patterns and text:
            return Advice(
                f"Count the lines of the training set that are also held out: {because}.",
                in_start_folder(run, f"grep -cxFf {patterns} {text}"),
            )
    return Advice(
        "See how many training pairs are 'in validation or test', and whether similar ones are "
        f"left: {because}.",
        _explain_cleaning(run),
    )


def without_leaks(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to drop held-out pairs from training; empty: it was so already."""
    if run.config.cleaning.drop_leaks:
        return []
    return [
        Advice(
            f"Start a new run without the held-out pairs: {because}.",
            train_command(run, {"cleaning.drop_leaks": True}, new_run=True),
        )
    ]


def _explain_cleaning(run: RunFacts) -> str:
    config = run.record.directory.config.absolute()
    return in_start_folder(run, f"dragoman prepare {shlex.quote(str(config))} --explain 3")


def _next_larger(config: Config) -> Mapping[str, object] | None:
    """Returns the shape of the next preset, up to base; larger ones learn more only from very much
    data."""
    found = [name for name, width in _alike(config.model) if config.model.width < width]
    return _shape(found[0]) if found and PRESETS[found[0]]["width"] <= LARGEST_WIDTH else None


def _next_smaller(config: Config) -> Mapping[str, object] | None:
    found = [name for name, width in _alike(config.model) if width < config.model.width]
    return _shape(found[-1]) if found else None


def _alike(model: ModelSettings) -> list[tuple[str, int]]:
    """Returns the presets of the same build with their widths, the narrowest first."""
    is_deep = _is_deep(model.encoder_layers, model.decoder_layers)
    found = [
        (name, shape["width"])
        for name, shape in PRESETS.items()
        if _is_deep(shape["encoder_layers"], shape["decoder_layers"]) == is_deep
    ]
    return sorted(found, key=lambda preset: preset[1])


def _is_deep(encoder_layers: int, decoder_layers: int) -> bool:
    """Returns whether the encoder is much deeper than the decoder, for fast translation."""
    return encoder_layers > 2 * decoder_layers


def _shape(preset: str) -> Mapping[str, object]:
    return {"preset": preset, **PRESETS[preset]}


def _shown(name: str, folder: str) -> str:
    """Returns what a shell reads as the file's text; empty for what is not on this disk."""
    if _ADDRESS in name:
        return ""
    path = shlex.quote(str(Path(folder) / name))
    readers = {".gz": "zcat", ".xz": "xzcat", ".bz2": "bzcat", ".zst": "zstdcat"}
    reader = readers.get(Path(name).suffix)
    return f"<({reader} {path})" if reader else path
