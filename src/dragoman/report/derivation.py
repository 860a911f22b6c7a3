"""How each fact follows from the files of a run: a record comes in, `Facts` go out. Pure."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from dragoman.checkpoints.names import CONTENTS
from dragoman.config import Config
from dragoman.model.size import size_of
from dragoman.report.curves import finite, step_curves, thinned
from dragoman.report.facts import (
    FORMAT,
    AttemptFacts,
    CheckpointFacts,
    Data,
    EvaluationFacts,
    Facts,
    FileFacts,
    Learning,
    Model,
    Part,
    RankFacts,
    Sample,
    SampleSet,
    Schedule,
    Score,
    SideFacts,
    Speed,
    SplitFacts,
    State,
    StateName,
    Times,
    TroubleFacts,
)
from dragoman.report.history import Attempt, attempts_of, counting_evaluations, counting_steps
from dragoman.report.record import CheckpointFolder, RunRecord
from dragoman.shards.passport import Passport, Side
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.schedule import peak_of

# A run that says nothing for this long, and for much longer than it ever did, is taken for dead.
SILENCE_S = 120.0
SILENCE_OVER_LONGEST_GAP = 3.0


def facts_of(record: RunRecord) -> Facts:
    config, passport = record.config, record.passport
    attempts = attempts_of(record.events)
    steps_by_rank = counting_steps(attempts)
    steps = steps_by_rank[min(steps_by_rank)] if steps_by_rank else []
    evaluations = counting_evaluations(attempts)
    times = _times(attempts)
    silent_s = _silent_s(record, attempts)
    attempt_facts = [
        _attempt_facts(attempt, record, silent_s if attempt is attempts[-1] else math.inf)
        for attempt in attempts
    ]
    return Facts(
        format=FORMAT,
        name=config.name,
        run=record.root,
        read_at=record.read_at,
        state=_state(config, attempts, attempt_facts, steps, times, silent_s),
        model=_model(config, passport),
        times=times,
        speed=_speed(steps_by_rank, attempts, times) if steps else None,
        learning=_learning(config, passport, evaluations),
        scores=[
            Score(
                split=scored.split,
                checkpoint_steps=scored.steps,
                sentences=scored.sentences,
                beam=scored.beam,
                bleu=finite(scored.bleu),
                chrf=finite(scored.chrf),
                bleu_signature=scored.bleu_signature,
                chrf_signature=scored.chrf_signature,
            )
            for scored in record.scored
        ],
        schedule=_schedule(config, steps),
        data=_data(passport) if passport else None,
        checkpoint=_checkpoint(record, attempts),
        translations=_translations(record, evaluations),
        skipped_updates=sum(not step.updated for step in steps),
        troubles=_troubles(attempts),
        unreadable=record.unreadable,
        attempts=attempt_facts,
        curves=step_curves(steps),
        settings=config.model_dump(mode="json", exclude_none=True),
    )


def _times(attempts: Sequence[Attempt]) -> Times:
    wall_s = math.fsum(attempt.wall_s for attempt in attempts)
    stepping_s = math.fsum(step.step_s for attempt in attempts for step in attempt.steps)
    evaluating_s = math.fsum(e.seconds for attempt in attempts for e in attempt.evaluations)
    saving_s = math.fsum(save.seconds for attempt in attempts for save in attempt.saves)
    return Times(
        wall_s=wall_s,
        stepping_s=stepping_s,
        evaluating_s=evaluating_s,
        saving_s=saving_s,
        other_s=max(0.0, wall_s - stepping_s - evaluating_s - saving_s),
        lost_steps=sum(len(attempt.lost_steps) for attempt in attempts),
        lost_s=math.fsum(attempt.lost_s for attempt in attempts),
    )


def _silent_s(record: RunRecord, attempts: Sequence[Attempt]) -> float:
    """Since the last sign of life; status.json may be newer than events that are not flushed."""
    signs = [attempt.last_event_at for attempt in attempts[-1:]]
    if record.heartbeat_at is not None:
        signs.append(record.heartbeat_at)
    return max(0.0, record.read_at - max(signs)) if signs else 0.0


def _attempt_facts(attempt: Attempt, record: RunRecord, silent_s: float) -> AttemptFacts:
    members = record.members.get(attempt.number, [])
    starts = [attempt.starts[rank] for rank in sorted(attempt.starts)]
    state, reason = _ending(attempt, silent_s)
    return AttemptFacts(
        attempt=attempt.number,
        started_at=attempt.started_at,
        wall_s=attempt.wall_s,
        ranks=max([len(members), len(attempt.steps_by_rank), *(s.ranks for s in starts)]),
        hosts=list(dict.fromkeys([m.host for m in members] + [s.host for s in starts])),
        devices=list(dict.fromkeys([m.device for m in members] + [s.device for s in starts])),
        first_step=attempt.first_step,
        last_step=attempt.last_step,
        lost_steps=len(attempt.lost_steps),
        lost_s=attempt.lost_s,
        state=state,
        reason=reason,
    )


def _ending(attempt: Attempt, silent_s: float) -> tuple[StateName, str]:
    failures = sorted(end for end in attempt.ends if end.event.state == "failed")
    if failures:
        # The first rank to fail has the cause; the others then fail for want of it.
        end = failures[0]
        rank = f"rank {end.rank}: " if len(attempt.steps_by_rank) > 1 else ""
        return "failed", rank + end.event.reason
    if attempt.ends:
        event = attempt.ends[0].event
        return "finished" if event.state == "finished" else "preempted", event.reason
    if silent_s > max(SILENCE_S, SILENCE_OVER_LONGEST_GAP * attempt.longest_gap_s):
        return "broken off", "it said nothing at its end: killed, out of memory or a power cut"
    return "training", ""


def _state(
    config: Config,
    attempts: Sequence[Attempt],
    attempt_facts: Sequence[AttemptFacts],
    steps: Sequence[StepDone],
    times: Times,
    silent_s: float,
) -> State:
    if not attempts:
        return State("preparing", "", 0, config.training.steps, None, None)
    last = attempt_facts[-1]
    step = attempts[-1].last_step
    planned = config.training.steps
    remaining_s = None
    if last.state == "training" and planned is not None and steps:
        done = len(steps) + times.lost_steps
        remaining_s = max(0, planned - step) * times.wall_s / done
    return State(
        name=last.state,
        reason=last.reason,
        step=step,
        planned_steps=planned,
        silent_s=silent_s if last.state in ("training", "broken off") else None,
        remaining_s=remaining_s,
    )


def _model(config: Config, passport: Passport | None) -> Model:
    model = config.model
    vocabulary = passport.vocabulary if passport else config.tokenizer.vocabulary
    size = size_of(model, vocabulary)
    return Model(
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        preset=model.preset,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        width=model.width,
        heads=model.heads,
        filter=model.filter,
        vocabulary=vocabulary,
        parameters=size.parameters,
        weight_bytes=size.weight_bytes,
    )


def _speed(
    steps_by_rank: dict[int, list[StepDone]],
    attempts: Sequence[Attempt],
    times: Times,
) -> Speed:
    steps = steps_by_rank[min(steps_by_rank)]
    seconds = [step.step_s for step in steps]
    total_s = math.fsum(seconds)
    tokens = sum(step.tokens for step in steps)
    median, p95, p99 = (float(value) for value in np.percentile(seconds, [50, 95, 99]))
    slowest = max(steps, key=lambda step: step.step_s)
    starts = {rank: start for attempt in attempts for rank, start in attempt.starts.items()}
    shares = {rank: _part_shares(done) for rank, done in steps_by_rank.items() if done}
    return Speed(
        steps=len(steps),
        epochs=steps[-1].epoch,
        tokens=tokens,
        tokens_per_step=tokens / len(steps),
        tokens_per_s=tokens / total_s,
        tokens_per_wall_s=tokens / times.wall_s if times.wall_s else None,
        mean_step_s=total_s / len(steps),
        median_step_s=median,
        p95_step_s=p95,
        p99_step_s=p99,
        slowest_step_s=slowest.step_s,
        slowest_step=slowest.step,
        parts={
            part: Part(mean_s=share * total_s / len(steps), share=share)
            for part, share in shares[min(shares)].items()
        },
        ranks=[
            RankFacts(
                rank=rank,
                host=starts[rank].host if rank in starts else "",
                device=starts[rank].device if rank in starts else "",
                mean_step_s=math.fsum(s.step_s for s in steps_by_rank[rank])
                / len(steps_by_rank[rank]),
                part_shares=of_rank,
            )
            for rank, of_rank in shares.items()
        ],
    )


def _part_shares(steps: Sequence[StepDone]) -> dict[str, float]:
    spent_s: dict[str, float] = defaultdict(float)
    for step in steps:
        for part, part_s in step.parts_s.items():
            spent_s[part] += part_s
    total_s = math.fsum(step.step_s for step in steps)
    return {part: part_s / total_s for part, part_s in spent_s.items()}


def _learning(
    config: Config, passport: Passport | None, evaluations: Sequence[Evaluated]
) -> Learning:
    facts = [
        EvaluationFacts(
            step=evaluated.step,
            validation_loss=finite(evaluated.validation_loss),
            train_sample_loss=finite(evaluated.train_sample_loss),
            bleu=finite(evaluated.bleu),
            chrf=finite(evaluated.chrf),
            seconds=evaluated.seconds,
        )
        for evaluated in evaluations
    ]
    sentences = config.evaluation.translate_sentences or None
    if passport:
        in_set = passport.splits["validation"].pairs_in
        sentences = min(sentences or in_set, in_set)
    return Learning(
        evaluations=thinned(facts),
        best_bleu=max(
            (e for e in facts if e.bleu is not None), key=lambda e: e.bleu or 0.0, default=None
        ),
        lowest_loss=min(
            (e for e in facts if e.validation_loss is not None),
            key=lambda e: e.validation_loss or 0.0,
            default=None,
        ),
        last=facts[-1] if facts else None,
        bleu_signature=evaluations[-1].bleu_signature if evaluations else "",
        chrf_signature=evaluations[-1].chrf_signature if evaluations else "",
        sentences=sentences,
        beam=config.evaluation.beam,
    )


def _schedule(config: Config, steps: Sequence[StepDone]) -> Schedule:
    settings = config.schedule
    planned = peak_of(settings, config.model.width, config.training.steps)
    highest = max(steps, key=lambda step: step.learning_rate, default=None)
    return Schedule(
        kind=settings.kind,
        scale=settings.scale,
        peak=settings.peak,
        warmup_steps=settings.warmup_steps,
        final=settings.final,
        planned_peak_rate=planned.rate,
        planned_peak_step=planned.step,
        highest_rate=highest.learning_rate if highest else None,
        highest_rate_step=highest.step if highest else None,
        last_rate=steps[-1].learning_rate if steps else None,
    )


def _data(passport: Passport) -> Data:
    def side(language: str, record: Side) -> SideFacts:
        return SideFacts(language, record.bytes, record.tokens, record.unknown_tokens)

    return Data(
        splits=[
            SplitFacts(
                split=name,
                pairs_in=record.pairs_in,
                pairs_kept=record.pairs_kept,
                dropped=record.dropped,
                source=side(passport.source_language, record.source),
                target=side(passport.target_language, record.target),
            )
            for name, record in passport.splits.items()
        ],
        input_files=len(passport.inputs),
        input_bytes=sum(file.bytes for file in passport.inputs),
    )


def _checkpoint(record: RunRecord, attempts: Sequence[Attempt]) -> CheckpointFacts | None:
    if not record.checkpoints:
        return None
    newest = record.checkpoints[-1]
    saves = [save for attempt in attempts for save in attempt.saves]
    return CheckpointFacts(
        folder=newest.name,
        step=newest.step,
        files=_files(newest),
        bytes=sum(newest.file_bytes.values()),
        kept=len(record.checkpoints),
        kept_bytes=sum(sum(folder.file_bytes.values()) for folder in record.checkpoints),
        best=record.best_checkpoint,
        saves=len(saves),
        mean_save_s=math.fsum(save.seconds for save in saves) / len(saves) if saves else None,
    )


def _files(folder: CheckpointFolder) -> list[FileFacts]:
    """The largest first."""
    return [
        FileFacts(name, CONTENTS.get(name, ""), size)
        for name, size in sorted(folder.file_bytes.items(), key=lambda file: (-file[1], file[0]))
    ]


def _translations(record: RunRecord, evaluations: Sequence[Evaluated]) -> list[SampleSet]:
    """Of the scored sets, and of the last evaluation during training."""
    sets = [SampleSet(s.split, s.steps[-1], _samples(s.samples)) for s in record.scored if s.steps]
    if evaluations:
        last = evaluations[-1]
        sets.append(SampleSet("validation", last.step, _samples(last.samples)))
    return [sample_set for sample_set in sets if sample_set.samples]


def _samples(recorded: Sequence[dict[str, str]]) -> list[Sample]:
    return [
        Sample(
            source=sample.get("source", ""),
            translation=sample.get("translation", ""),
            reference=sample.get("reference", ""),
            equals_reference=sample.get("translation") == sample.get("reference"),
        )
        for sample in recorded
    ]


def _troubles(attempts: Sequence[Attempt]) -> list[TroubleFacts]:
    steps_of: dict[str, list[int]] = defaultdict(list)
    for attempt in attempts:
        for trouble in attempt.troubles:
            steps_of[trouble.what].append(trouble.step)
    return [
        TroubleFacts(what=what, times=len(steps), first_step=min(steps), last_step=max(steps))
        for what, steps in steps_of.items()
    ]
