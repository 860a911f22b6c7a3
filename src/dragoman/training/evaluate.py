"""Looking at how good the model has become: losses, translations and their scores."""

import time

from dragoman.decoding.translator import translate
from dragoman.evaluation.metrics import Scores, score
from dragoman.evaluation.translations import AgainstBest
from dragoman.telemetry.events import Evaluated, Incident
from dragoman.training.setup import Training
from dragoman.training.state import RunState
from dragoman.training.tensors import whole_objective


def evaluate(training: Training, state: RunState) -> RunState:
    """Losses and scores, shared out over the ranks. Collective: every rank must call."""
    config, group = training.config, training.group
    group.pulse.enter("evaluation")
    begun = time.perf_counter()
    wanted = config.evaluation.translate_sentences or None
    sources, references = (side[:wanted] for side in training.validation_text)
    with whole_objective(
        training.objective, config.model, training.tokenizer.size, group.device
    ) as objective:
        validation = training.validation.measure(objective, group)
        train_sample = None
        if training.train_sample:
            train_sample = training.train_sample.measure(objective, group)
        shares = group.gather(
            translate(
                objective.model,
                training.tokenizer,
                sources[group.rank :: group.ranks],
                config.decoding.model_copy(update={"beam": config.evaluation.beam}),
                group.device,
                longest=config.data.max_length,
            )
        )
    translations = [shares[n % group.ranks][n // group.ranks] for n in range(len(sources))]
    # Rank 0 scores, compares and keeps the time; all act on what it says.
    scores = Scores(
        *group.on_rank_0(lambda: score(translations, references, config.data.target_language))
    )
    against_best = AgainstBest(
        *group.on_rank_0(
            lambda: training.translations.keep(
                state.step, state.best_step, translations, references
            )
        )
    )
    if against_best.trouble:
        training.report_incident(Incident(state.step, "evaluation", against_best.trouble))
    seconds = group.on_rank_0(lambda: time.perf_counter() - begun)
    value = scores.bleu if config.evaluation.best_by == "bleu" else -validation.nats
    state = state.after_evaluation(value, seconds, config.checkpoints.keep_best)
    evaluated = Evaluated(
        step=state.step,
        validation_loss=validation.nats,
        validation_loss_error=validation.error,
        train_sample_loss=train_sample.nats if train_sample else None,
        train_sample_loss_error=train_sample.error if train_sample else None,
        **scores._asdict(),
        compared_step=against_best.step,
        bleu_gain_p=against_best.bleu_gain_p,
        is_best=state.best_step == state.step,
        seconds=seconds,
        samples=[
            {"source": source, "translation": translation, "reference": reference}
            for source, translation, reference in zip(
                sources, translations, references, strict=True
            )
        ][: config.evaluation.samples],
    )
    if group.leads:
        training.events.emit(evaluated)
        training.narrator.evaluation(evaluated)
        training.tell(training.observer.after_evaluation(evaluated))
    return state
