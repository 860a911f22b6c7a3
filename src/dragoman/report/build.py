"""Puts a report together: the record of a run, its run and the findings come in. Pure."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.questions import Diagnosis, health_of
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault
from dragoman.model.size import size_of
from dragoman.report.content import (
    FORMAT,
    Answer,
    AttemptContent,
    Evaluation,
    EvidenceFigure,
    FaultContent,
    IncidentContent,
    Model,
    Report,
    Sample,
    SampleSet,
    Score,
)
from dragoman.report.curves import finite, step_curves, step_times, thinned
from dragoman.report.host_curves import host_curves
from dragoman.report.state import state_of
from dragoman.telemetry.events import Evaluated
from dragoman.training.schedule import learning_rate


def report_of(run: RunFacts, diagnosis: Diagnosis) -> Report:
    config, evaluations = run.config, run.evaluations
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    return Report(
        format=FORMAT,
        name=config.name,
        run=run.record.root,
        read_at=run.record.read_at,
        state=state_of(config, run),
        model=_model(run),
        answers=[_answer(finding) for finding in diagnosis.answers],
        also=[_answer(finding) for finding in diagnosis.also],
        evaluations=[_evaluation(evaluated) for evaluated in thinned(evaluations)],
        bleu_signature=evaluations[-1].bleu_signature if evaluations else "",
        chrf_signature=evaluations[-1].chrf_signature if evaluations else "",
        scores=_scores(run),
        attempts=[_attempt(attempt, run) for attempt in run.attempts],
        faults=[_fault(fault) for fault in run.faults.faults],
        troubles=_troubles(run.attempts),
        skipped_updates=int(np.count_nonzero(~run.steps["updated"].astype(bool))),
        translations=_translations(run, evaluations),
        unreadable=run.record.unreadable,
        curves=step_curves(run.steps, rate),
        step_times=step_times(run.steps["step_s"].astype(np.float64)),
        hosts=host_curves(run),
        settings=config.model_dump(mode="json", exclude_none=True),
    )


def _answer(finding: Finding) -> Answer:
    return Answer(
        key=finding.key,
        question=finding.question,
        verdict=finding.verdict,
        health=health_of(finding),
        confidence=finding.confidence,
        sentence=finding.sentence,
        evidence=[_figure(figure) for figure in finding.evidence],
        advice=finding.advice,
    )


def _figure(figure: Figure) -> EvidenceFigure:
    value = figure.value
    if isinstance(value, float):  # of numpy's own too
        value = finite(float(value))
    elif not isinstance(value, str) and value is not None:
        value = int(value)
    low, high = finite(figure.low), finite(figure.high)
    return EvidenceFigure(figure.name, value, figure.unit, low, high, figure.note)


def _model(run: RunFacts) -> Model:
    config, passport = run.config, run.record.passport
    vocabulary = passport.vocabulary if passport else config.tokenizer.vocabulary
    return Model(
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        preset=config.model.preset,
        vocabulary=vocabulary,
        parameters=size_of(config.model, vocabulary).parameters,
    )


def _evaluation(evaluated: Evaluated) -> Evaluation:
    return Evaluation(
        step=evaluated.step,
        validation_loss=finite(evaluated.validation_loss),
        validation_loss_error=finite(evaluated.validation_loss_error),
        train_sample_loss=finite(evaluated.train_sample_loss),
        train_sample_loss_error=finite(evaluated.train_sample_loss_error),
        bleu=finite(evaluated.bleu),
        bleu_low=finite(evaluated.bleu_low),
        bleu_high=finite(evaluated.bleu_high),
        chrf=finite(evaluated.chrf),
        seconds=evaluated.seconds,
    )


def _scores(run: RunFacts) -> list[Score]:
    return [
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
        for scored in run.record.scored
    ]


def _attempt(attempt: Attempt, run: RunFacts) -> AttemptContent:
    members = run.record.members.get(attempt.number, [])
    starts = [attempt.starts[rank] for rank in sorted(attempt.starts)]
    return AttemptContent(
        attempt=attempt.number,
        started_at=attempt.started_at,
        wall_s=attempt.wall_s,
        ranks=attempt.ranks,
        hosts=attempt.host_names,
        devices=list(dict.fromkeys([m.device for m in members] + [s.device for s in starts])),
        first_step=attempt.first_step,
        last_step=attempt.last_step,
        lost_steps=attempt.lost_steps,
        lost_s=attempt.lost_s,
        state=attempt.state,
        reason=attempt.reason,
    )


def _fault(fault: Fault) -> FaultContent:
    return FaultContent(
        kind=fault.kind,
        what=fault.what,
        at=fault.at,
        attempt=fault.attempt,
        step=fault.step,
        host=fault.host,
        lost_steps=fault.lost_steps,
        lost_s=fault.lost_s,
        down_s=fault.down_s,
        recovery=fault.recovery,
    )


def _troubles(attempts: Sequence[Attempt]) -> list[IncidentContent]:
    steps_of: dict[str, list[int]] = defaultdict(list)
    for attempt in attempts:
        for trouble in attempt.incidents:
            steps_of[trouble.message].append(trouble.step)
    return [
        IncidentContent(what=what, times=len(steps), first_step=min(steps), last_step=max(steps))
        for what, steps in steps_of.items()
    ]


def _translations(run: RunFacts, evaluations: Sequence[Evaluated]) -> list[SampleSet]:
    """Of the scored sets, and of the last evaluation during training."""
    sets = [
        SampleSet(s.split, s.steps[-1], _samples(s.samples)) for s in run.record.scored if s.steps
    ]
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
