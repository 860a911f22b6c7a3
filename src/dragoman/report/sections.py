"""The report in words: facts come in, a document goes out, the most important first.

A new section is a function below and a line in `document_of`.
"""

from collections.abc import Callable, Iterable, Sequence

import tomli_w

from dragoman.console import duration
from dragoman.report.document import (
    Block,
    Chart,
    Document,
    KeyFigure,
    KeyFigures,
    Line,
    Paragraph,
    Samples,
    Section,
    Share,
    Shares,
    Table,
    Verbatim,
)
from dragoman.report.facts import (
    EvaluationFacts,
    Facts,
    Learning,
    Schedule,
    Score,
    Speed,
    SplitFacts,
    State,
)
from dragoman.report.wording import (
    count,
    instant,
    loss,
    percent,
    scientific,
    score,
    seconds,
    size,
)

SAMPLES_SHOWN = 10
TROUBLES_SHOWN = 50
ROWS_SHOWN = 12

PART_NAMES = {
    "data": "waiting for data",
    "forward": "forward",
    "backward": "backward, communication included",
    "optimizer": "optimizer",
    "rest": "rest",
}


def document_of(facts: Facts) -> Document:
    sections: Sequence[tuple[str, Callable[[Facts], Iterable[Block]]]] = (
        ("In short", in_short),
        ("Learning curves", learning_curves),
        ("Learning rate", learning_rate),
        ("Step time", step_time),
        ("Training data", training_data),
        ("Checkpoint", checkpoint),
        ("Translations", translations),
        ("Attempts and troubles", attempts_and_troubles),
        ("Settings", settings),
    )
    return Document(
        title=f"{facts.name}: {facts.model.source_language} to {facts.model.target_language}",
        subtitle=f"Training report of {facts.run}, read on {instant(facts.read_at)}",
        sections=[Section(title, list(blocks(facts))) for title, blocks in sections],
    )


def in_short(facts: Facts) -> Iterable[Block]:
    model = facts.model
    train = _split(facts, "train")
    trained_on = f", trained on {count(train.pairs_kept)} sentence pairs" if train else ""
    yield Paragraph(
        f"A {model.preset} with {count(model.parameters)} parameters and a vocabulary of "
        f"{count(model.vocabulary)} pieces translates {model.source_language} to "
        f"{model.target_language}{trained_on}. {state_in_words(facts.state)}"
    )
    yield KeyFigures(_key_figures(facts))
    yield Paragraph(_quality_in_words(facts))
    times = facts.times
    if times.wall_s:
        yield Shares(
            "Where the wall time went",
            [
                Share(label, seconds(spent_s), spent_s / times.wall_s)
                for label, spent_s in (
                    ("training steps", times.stepping_s),
                    ("evaluating", times.evaluating_s),
                    ("saving checkpoints", times.saving_s),
                    ("other", times.other_s),
                )
            ],
        )
        if times.lost_steps:
            yield Paragraph(
                f"{count(times.lost_steps, 'step')} came after the checkpoint from which a later "
                f"attempt went on, and had to be done again: {seconds(times.lost_s)} of the time "
                f"above ({percent(times.lost_s / times.wall_s)}) was lost."
            )
    if signatures := _signatures(facts):
        yield Verbatim("How the scores were computed (sacreBLEU signatures)", signatures)


def state_in_words(state: State) -> str:
    step = count(state.step)
    of_planned = f" of {count(state.planned_steps)}" if state.planned_steps else ""
    match state.name:
        case "preparing":
            return "No worker has reported yet: the run is preparing, or it ended before it began."
        case "training":
            silence = duration(state.silent_s or 0.0)
            left = ""
            if state.remaining_s is not None:
                left = f", about {duration(state.remaining_s)} left at the pace so far"
            return (
                f"It is training: step {step}{of_planned} is done{left}. "
                f"The last sign of life is {silence} old."
            )
        case "broken off":
            return (
                f"It broke off after step {step}{of_planned}, {duration(state.silent_s or 0.0)} "
                "before this report, and said nothing: killed, out of memory or a power cut. The "
                "same train command goes on from the last checkpoint."
            )
        case "preempted":
            return (
                f"It was stopped after step {step}{of_planned}: {state.reason}. The same train "
                "command goes on from there."
            )
        case "failed":
            return (
                f"It failed after step {step}{of_planned}: {state.reason}. Once the cause is gone, "
                "the same train command goes on from the last checkpoint."
            )
        case "finished":
            return f"It finished at step {step}: {state.reason}."


def _key_figures(facts: Facts) -> list[KeyFigure]:
    figures = []
    if best := facts.learning.best_bleu:
        figures.append(
            KeyFigure("best validation BLEU", score(best.bleu), f"step {count(best.step)}")
        )
    for scored in facts.scores:
        how = f"chrF {score(scored.chrf)}, {_search(scored.beam)}"
        figures.append(KeyFigure(f"BLEU on {scored.split}", score(scored.bleu), how))
    figures.append(
        KeyFigure("wall time", seconds(facts.times.wall_s), count(len(facts.attempts), "attempt"))
    )
    planned = facts.state.planned_steps
    figures.append(
        KeyFigure("steps", count(facts.state.step), f"of {count(planned)}" if planned else "")
    )
    if speed := facts.speed:
        figures.append(
            KeyFigure("epochs", f"{speed.epochs:.2f}", f"{speed.tokens / 1e6:,.1f} million tokens")
        )
        figures.append(
            KeyFigure("tokens a second", f"{speed.tokens_per_s:,.0f}", "target, while stepping")
        )
    if facts.attempts:
        last = facts.attempts[-1]
        figures.append(
            KeyFigure("workers", count(last.ranks), f"on {count(len(last.hosts), 'host')}")
        )
    return figures


def _quality_in_words(facts: Facts) -> str:
    learning, sentences = facts.learning, []
    if best := learning.best_bleu:
        translated = f"{count(learning.sentences)} sentences, " if learning.sentences else ""
        sentences.append(
            f"The best BLEU on validation is {score(best.bleu)} with chrF {score(best.chrf)}, at "
            f"step {count(best.step)} ({translated}{_search(learning.beam)})."
        )
    else:
        sentences.append("There is no evaluation yet.")
    sentences += [_score_in_words(scored) for scored in facts.scores]
    has_test_data = bool(facts.settings["data"].get("test"))
    if has_test_data and "test" not in {scored.split for scored in facts.scores} and best:
        sentences.append(
            f"The test set has not been scored yet: dragoman evaluate {facts.run} does that."
        )
    return " ".join(sentences)


def _score_in_words(scored: Score) -> str:
    if len(scored.checkpoint_steps) == 1:
        weights = f"the checkpoint of step {count(scored.checkpoint_steps[0])}"
    else:
        steps = ", ".join(count(step) for step in scored.checkpoint_steps)
        weights = f"the mean of the checkpoints of steps {steps}"
    return (
        f"On {scored.split}, {weights} has BLEU {score(scored.bleu)} and chrF "
        f"{score(scored.chrf)} ({count(scored.sentences)} sentences, {_search(scored.beam)})."
    )


def _search(beam: int) -> str:
    return "greedy search" if beam == 1 else f"beam {beam}"


def _signatures(facts: Facts) -> str:
    learning = facts.learning
    rows = [
        ("validation during training", learning.bleu_signature, learning.chrf_signature),
        *((scored.split, scored.bleu_signature, scored.chrf_signature) for scored in facts.scores),
    ]
    return "\n".join(
        f"{where}\n  BLEU {bleu}\n  chrF {chrf}" for where, bleu, chrf in rows if bleu or chrf
    )


def learning_curves(facts: Facts) -> Iterable[Block]:
    curves, learning = facts.curves, facts.learning
    if not curves.step:
        yield Paragraph("No step is done yet.")
        return
    yield Paragraph(_losses_in_words(learning))
    steps = [evaluation.step for evaluation in learning.evaluations]
    yield Chart(
        title="Loss",
        value_title="loss, nats per target token",
        number_format=".3f",
        shows_zero=False,
        lines=_with_values(
            Line("training batches (not comparable)", curves.step, curves.training_loss, True),
            Line("validation", steps, [e.validation_loss for e in learning.evaluations]),
            Line("training sample", steps, [e.train_sample_loss for e in learning.evaluations]),
        ),
    )
    if learning.best_bleu:
        yield Chart(
            title="Quality of the translations of the validation set",
            value_title="score, 0 to 100",
            number_format=".1f",
            lines=_with_values(
                Line("BLEU", steps, [e.bleu for e in learning.evaluations]),
                Line("chrF", steps, [e.chrf for e in learning.evaluations]),
            ),
        )
    if learning.evaluations:
        yield Table(
            ["step", "validation loss", "training sample", "BLEU", "chrF", "took"],
            [
                [
                    count(e.step),
                    loss(e.validation_loss),
                    loss(e.train_sample_loss),
                    score(e.bleu),
                    score(e.chrf),
                    seconds(e.seconds),
                ]
                for e in _some(learning.evaluations, (learning.best_bleu, learning.lowest_loss))
            ],
            "rrrrrr",
        )


def _losses_in_words(learning: Learning) -> str:
    words = []
    last, lowest = learning.last, learning.lowest_loss
    if last and lowest:
        words.append(
            f"The validation loss is {loss(last.validation_loss)} at step {count(last.step)}; its "
            f"lowest is {loss(lowest.validation_loss)} at step {count(lowest.step)}."
            if lowest.step != last.step
            else f"The validation loss is at its lowest: {loss(last.validation_loss)} at step "
            f"{count(last.step)}."
        )
        if last.train_sample_loss is not None:
            words.append(
                f"On a fixed sample of the training pairs it is {loss(last.train_sample_loss)}. "
                "These two are measured alike, without dropout and label smoothing, and can be "
                "compared: a gap that widens is overfitting."
            )
    else:
        words.append("There is no evaluation yet.")
    words.append(
        "The loss of the training batches includes dropout and label smoothing, which make it "
        "higher: its course can be read, but it cannot be compared with the others."
    )
    return " ".join(words)


def _some(
    evaluations: Sequence[EvaluationFacts], always: Iterable[EvaluationFacts | None]
) -> list[EvaluationFacts]:
    """Few enough for a table: evenly spread, with the last and those to be shown `always`."""
    every = -(-len(evaluations) // ROWS_SHOWN)
    spread = list(evaluations[::-1][::every])
    chosen = {e.step: e for e in [*spread, *always] if e is not None}
    return [chosen[step] for step in sorted(chosen)]


def learning_rate(facts: Facts) -> Iterable[Block]:
    schedule, curves = facts.schedule, facts.curves
    yield Paragraph(schedule_in_words(schedule, facts.model.width))
    if schedule.highest_rate is None or schedule.last_rate is None:
        return
    warming_up = facts.state.step < schedule.warmup_steps
    yield Paragraph(
        f"As run, the highest rate was {scientific(schedule.highest_rate)} at step "
        f"{count(schedule.highest_rate_step or 0)}, and the last was "
        f"{scientific(schedule.last_rate)}."
        + (
            f" Only {count(facts.state.step)} of {count(schedule.warmup_steps, 'warm-up step')} "
            "are done, so the curve shows the rise alone."
            if warming_up
            else ""
        )
    )
    yield Chart(
        title="Learning rate as run",
        value_title="learning rate",
        number_format=".2e",
        lines=[Line("learning rate", curves.step, curves.learning_rate)],
    )


def schedule_in_words(schedule: Schedule, width: int) -> str:
    warmup = count(schedule.warmup_steps, "warm-up step")
    rises = f"rises in a straight line for {warmup}" if schedule.warmup_steps else "has no warm-up"
    peak = f"{scientific(schedule.planned_peak_rate)} at step {count(schedule.planned_peak_step)}"
    falls = {
        "noam": "then falls with the inverse square root of the step",
        "inverse-square-root": "then falls with the inverse square root of the step",
        "cosine": f"then falls along half a cosine to {schedule.final:g} at the last step",
        "linear": f"then falls in a straight line to {schedule.final:g} at the last step",
        "constant": "then stays where it is",
    }[schedule.kind]
    if schedule.kind == "noam":
        setting = (
            f"schedule.scale = {schedule.scale:g} is a factor and not a rate: the rate is "
            f"{schedule.scale:g} / sqrt({width}) x min(1 / sqrt(step), step / "
            f"{schedule.warmup_steps}^1.5)."
        )
    else:
        setting = f"schedule.peak = {schedule.peak:g} is the rate at the end of the warm-up."
    return (
        f"The schedule is {schedule.kind}: the rate {rises}, {falls}. {setting} Its highest value "
        f"in the planned run is {peak}. It follows from the step alone; nothing in it reacts to "
        "the loss."
    )


def step_time(facts: Facts) -> Iterable[Block]:
    speed, curves = facts.speed, facts.curves
    if not speed:
        yield Paragraph("No step is done yet.")
        return
    yield Paragraph(
        f"An average step took {seconds(speed.mean_step_s)} for "
        f"{speed.tokens_per_step:,.0f} target tokens; half of the "
        f"{count(speed.steps, 'step')} took less than {seconds(speed.median_step_s)}. "
        f"That is {speed.tokens_per_s:,.0f} target tokens a second while stepping{_overall(speed)}."
    )
    yield KeyFigures(
        [
            KeyFigure("mean", seconds(speed.mean_step_s), f"median {seconds(speed.median_step_s)}"),
            KeyFigure("95 % below", seconds(speed.p95_step_s), "of the steps"),
            KeyFigure("99 % below", seconds(speed.p99_step_s), "of the steps"),
            KeyFigure(
                "slowest", seconds(speed.slowest_step_s), f"step {count(speed.slowest_step)}"
            ),
        ]
    )
    yield Shares(
        "Where the time of an average step goes",
        [
            Share(PART_NAMES.get(name, name), seconds(part.mean_s), part.share)
            for name, part in speed.parts.items()
        ],
    )
    if len(speed.ranks) > 1:
        names = list(speed.parts)
        yield Table(
            ["rank", "host", "device", "mean step", *names],
            [
                [
                    str(rank.rank),
                    rank.host,
                    rank.device,
                    seconds(rank.mean_step_s),
                    *(percent(rank.part_shares.get(name, 0.0)) for name in names),
                ]
                for rank in speed.ranks
            ],
            "rllr" + "r" * len(names),
        )
    yield Chart(
        title="Speed",
        value_title="target tokens a second",
        number_format=",.0f",
        lines=[Line("tokens a second", curves.step, curves.tokens_per_s)],
    )
    # The same, as long as each point is one step.
    slowest = Line("slowest nearby", curves.step, curves.slowest_step_s, True)
    is_binned = curves.slowest_step_s != curves.mean_step_s
    yield Chart(
        title="Time of a step",
        value_title="seconds",
        number_format=".3f",
        lines=[
            *([slowest] if is_binned else []),
            Line("mean" if is_binned else "step", curves.step, curves.mean_step_s),
        ],
    )
    yield Chart(
        title="Where the time of a step goes",
        value_title="share of the step, %",
        number_format=".1f",
        lines=[
            Line(
                name,
                curves.step,
                [None if share is None else 100 * share for share in shares],
            )
            for name, shares in curves.part_shares.items()
        ],
        is_stacked=True,
    )


def _overall(speed: Speed) -> str:
    if speed.tokens_per_wall_s is None:
        return ""
    return f", {speed.tokens_per_wall_s:,.0f} over the whole wall time"


def training_data(facts: Facts) -> Iterable[Block]:
    if not facts.data:
        yield Paragraph("The run has not recorded its data yet.")
        return
    train = _split(facts, "train")
    if train:
        yield Paragraph(
            f"The model learns from {count(train.pairs_kept)} sentence pairs, "
            f"{size(train.source.text_bytes)} of {train.source.language} and "
            f"{size(train.target.text_bytes)} of {train.target.language} as plain text. "
            + _dropped_in_words(train)
        )
    yield Table(
        ["set", "side", "pairs read", "lines kept", "text", "tokens", "unknown tokens"],
        [
            [
                split.split,
                side.language,
                count(split.pairs_in),
                count(split.pairs_kept),
                size(side.text_bytes),
                count(side.tokens),
                count(side.unknown_tokens),
            ]
            for split in facts.data.splits
            for side in (split.source, split.target)
        ],
        "llrrrrr",
    )
    if train and train.dropped:
        yield Table(
            ["dropped because", "pairs", "share"],
            [
                [reason, count(pairs), percent(pairs / train.pairs_in)]
                for reason, pairs in sorted(train.dropped.items(), key=lambda item: -item[1])
            ],
            "lrr",
        )


def _dropped_in_words(train: SplitFacts) -> str:
    dropped = sum(train.dropped.values())
    if not dropped:
        return f"All of the {count(train.pairs_in)} pairs that were read are kept."
    return (
        f"Of {count(train.pairs_in)} pairs that were read, {count(dropped)} were dropped "
        f"({percent(dropped / train.pairs_in)})."
    )


def _split(facts: Facts, name: str) -> SplitFacts | None:
    splits = facts.data.splits if facts.data else []
    return next((split for split in splits if split.split == name), None)


def checkpoint(facts: Facts) -> Iterable[Block]:
    newest = facts.checkpoint
    if not newest:
        yield Paragraph("There is no checkpoint yet.")
        return
    took = f", {seconds(newest.mean_save_s)} each" if newest.mean_save_s is not None else ""
    best = f"The best is {newest.best}. " if newest.best else ""
    yield Paragraph(
        f"A checkpoint weighs {size(newest.bytes)}. Its {count(facts.model.parameters)} weights "
        f"alone are {size(facts.model.weight_bytes)}, four bytes each; Adam keeps two more numbers "
        f"for each of them. Saved so far: {count(newest.saves, 'checkpoint')}{took}. On disk: "
        f"{count(newest.kept, 'checkpoint')}, {size(newest.kept_bytes)}. {best}"
    )
    yield Table(
        [f"{newest.folder}", "holds", "size"],
        [
            *([file.name, file.holds, size(file.bytes)] for file in newest.files),
            ["together", "", size(newest.bytes)],
        ],
        "llr",
    )


def translations(facts: Facts) -> Iterable[Block]:
    if not facts.translations:
        yield Paragraph("Nothing has been translated yet.")
    for found in facts.translations:
        shown = found.samples[:SAMPLES_SHOWN]
        equal = sum(sample.equals_reference for sample in shown)
        yield Samples(
            f"{found.split}, step {count(found.step)}: {equal} of the {len(shown)} translations "
            "shown are word for word the reference",
            shown,
        )


def attempts_and_troubles(facts: Facts) -> Iterable[Block]:
    if facts.attempts:
        yield Table(
            ["attempt", "started", "workers", "on", "steps", "wall time", "lost", "ended"],
            [
                [
                    str(attempt.attempt),
                    instant(attempt.started_at),
                    count(attempt.ranks),
                    f"{', '.join(attempt.hosts)} ({', '.join(attempt.devices)})",
                    _steps_in_words(attempt.first_step, attempt.last_step),
                    seconds(attempt.wall_s),
                    f"{count(attempt.lost_steps, 'step')}, {seconds(attempt.lost_s)}"
                    if attempt.lost_steps
                    else "nothing",
                    ": ".join(filter(None, (attempt.state, attempt.reason))),
                ]
                for attempt in facts.attempts
            ],
            "rlrlrrll",
        )
    if facts.skipped_updates:
        yield Paragraph(
            f"In {count(facts.skipped_updates, 'step')} the gradients were not finite: the weights "
            "stayed as they were."
        )
    if facts.troubles:
        yield Table(
            ["trouble", "times", "first at step", "last at step"],
            [
                [
                    trouble.what,
                    count(trouble.times),
                    count(trouble.first_step),
                    count(trouble.last_step),
                ]
                for trouble in facts.troubles[:TROUBLES_SHOWN]
            ],
            "lrrr",
        )
        if (more := len(facts.troubles) - TROUBLES_SHOWN) > 0:
            yield Paragraph(f"{count(more)} more are in report.json.")
    else:
        yield Paragraph("No skipped update, failed save or the like was recorded.")
    for sentence in facts.unreadable:
        yield Paragraph(f"Not read for this report: {sentence}.")


def _steps_in_words(first: int, last: int) -> str:
    return f"{count(first)} to {count(last)}" if last >= first else "none"


def settings(facts: Facts) -> Iterable[Block]:
    yield Verbatim("config.toml as run", tomli_w.dumps(facts.settings))


def _with_values(*lines: Line) -> list[Line]:
    return [line for line in lines if any(value is not None for value in line.values)]
