"""Puts a report together: the facts of a run and their diagnosis come in. Pure."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from dragoman.diagnosis.commands import is_recipe_line
from dragoman.diagnosis.findings import Advice, Finding
from dragoman.diagnosis.phrasing import savings
from dragoman.diagnosis.questions import Diagnosis, health_of, question_of
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.time_spent import cost_per_s
from dragoman.report.content import (
    FORMAT,
    AdviceContent,
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
    finite,
)
from dragoman.report.curves import step_curves, step_times, thinned
from dragoman.report.host_curves import host_curves
from dragoman.report.state import state_of
from dragoman.telemetry.events import Evaluated
from dragoman.training.schedule import learning_rate


def report_of(run: RunFacts, diagnosis: Diagnosis) -> Report:
    config, evaluations = run.config, run.evaluations
    newest = _newest_scored(run)
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    return Report(
        format=FORMAT,
        name=config.name,
        run=str(run.record.directory.root),
        read_at=run.record.read_at,
        state=state_of(run),
        model=_model(run),
        answers=[_answer(run, *answer) for answer in diagnosis.answers.items()],
        also=[_answer(run, *answer) for answer in diagnosis.also.items()],
        evaluations=[Evaluation.model_validate(evaluated) for evaluated in thinned(evaluations)],
        bleu_signature=newest.bleu_signature if newest else "",
        chrf_signature=newest.chrf_signature if newest else "",
        scores=[Score.model_validate(scored) for scored in run.record.scored],
        attempts=[AttemptContent.model_validate(attempt) for attempt in run.attempts],
        faults=[FaultContent.model_validate(fault) for fault in run.faults.faults],
        troubles=_incidents(run.attempts),
        skipped_updates=int(np.count_nonzero(~run.steps["updated"].astype(bool))),
        translations=_translations(run),
        unreadable=run.record.unreadable,
        curves=step_curves(run.steps, rate),
        step_times=step_times(run.steps["step_s"]),
        hosts=host_curves(run),
        settings=config.model_dump(mode="json", exclude_none=True),
    )


def _answer(run: RunFacts, key: str, finding: Finding) -> Answer:
    return Answer(
        key=key,
        question=question_of(key).text,
        verdict=finding.verdict,
        health=health_of(key, finding),
        confidence=finding.confidence,
        plain=finding.plain,
        sentence=finding.sentence,
        evidence=[EvidenceFigure.model_validate(figure) for figure in finding.evidence],
        advice=[_advice(run, advice) for advice in finding.advice],
    )


def _advice(run: RunFacts, advice: Advice) -> AdviceContent:
    saved_s = finite(advice.saves_s)
    prices = run.config.cost
    per_s = cost_per_s(run.attempts, prices.host_per_hour)
    saved_cost = saved_s * per_s if saved_s and per_s else None
    return AdviceContent(
        text=advice.text,
        command=advice.command,
        is_recipe=is_recipe_line(advice.command),
        recipe=advice.recipe,
        saves_s=saved_s,
        saves_cost=saved_cost,
        saves=savings(saved_s, saved_cost, prices.currency) if saved_s else "",
    )


def _model(run: RunFacts) -> Model:
    config = run.config
    return Model(
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        preset=config.model.preset,
        vocabulary=run.record.vocabulary,
        parameters=run.record.model_size.parameters,
    )


def _incidents(attempts: Sequence[Attempt]) -> list[IncidentContent]:
    steps_of: dict[str, list[int]] = defaultdict(list)
    for attempt in attempts:
        for incident in attempt.incidents:
            steps_of[incident.message].append(incident.step)
    return [
        IncidentContent(what=what, times=len(steps), first_step=min(steps), last_step=max(steps))
        for what, steps in steps_of.items()
    ]


def _newest_scored(run: RunFacts) -> Evaluated | None:
    """Returns the last evaluation, without one whose scores are still computed beside training."""
    scored = [evaluated for evaluated in run.evaluations if evaluated.bleu is not None]
    return next(reversed(scored or run.evaluations), None)


def _translations(run: RunFacts) -> list[SampleSet]:
    """Returns those of the scored sets, and of the last evaluation during training."""
    recorded = [(s.split, s.steps[-1], s.samples) for s in run.record.scored if s.steps]
    newest = _newest_scored(run)
    recorded += [("validation", newest.step, newest.samples)] if newest else []
    return [
        SampleSet(split=split, step=step, samples=[_sample(sample) for sample in samples])
        for split, step, samples in recorded
        if samples
    ]


def _sample(recorded: dict[str, str]) -> Sample:
    return Sample(
        source=recorded.get("source", ""),
        translation=recorded.get("translation", ""),
        reference=recorded.get("reference", ""),
        equals_reference=recorded.get("translation") == recorded.get("reference"),
    )
