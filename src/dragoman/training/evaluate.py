"""Evaluates the model during training: losses on held-out pairs, and scores of translations."""

import time
from dataclasses import dataclass

from dragoman.config import Config
from dragoman.decoding.translator import translate
from dragoman.distributed.group import Group
from dragoman.evaluation.heldout import HeldOut, fixed_sample
from dragoman.evaluation.metrics import Scores, score
from dragoman.evaluation.scores import samples_of
from dragoman.evaluation.translations import ComparedWithBest, Translations
from dragoman.model.loss import Objective
from dragoman.rundir import RunDir
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Evaluated, Incident
from dragoman.tokenizer import Tokenizer
from dragoman.training.recorder import Recorder
from dragoman.training.state import RunState
from dragoman.training.tensors import whole_objective
from dragoman.training.updater import Updater


@dataclass(frozen=True)
class Evaluator:
    """The held-out pairs and texts of a run, which stay the same for all of its evaluations."""

    config: Config
    group: Group
    tokenizer: Tokenizer
    validation: HeldOut
    train_sample: HeldOut | None
    sources: list[str]
    """Raw validation sentences that are translated."""
    references: list[str]
    translations: Translations

    def evaluate(self, updater: Updater, state: RunState, recorder: Recorder) -> RunState:
        """Measures losses and scores, shared out over the ranks, and records them.

        Collective: every rank must call.
        """
        config, group = self.config, self.group
        group.pulse.enter("evaluation")
        begun = time.perf_counter()
        averaged = updater.translating()
        whole = whole_objective(updater.objective, averaged, config.model, self.tokenizer.size)
        validation = self.validation.measure(whole, group)
        train_sample = self.train_sample.measure(whole, group) if self.train_sample else None
        translations = self._translate(whole)
        # Rank 0 scores, compares and keeps the time; all act on its results.
        scores = Scores(
            *group.on_rank_0(
                lambda: score(translations, self.references, config.data.target_language)
            )
        )
        compared = ComparedWithBest(
            *group.on_rank_0(
                lambda: self.translations.keep(
                    state.step, state.best_step, translations, self.references
                )
            )
        )
        if compared.problem:
            recorder.record_incident(
                Incident(state.step, "evaluation", compared.problem, ranks=(0,))
            )
        seconds = group.on_rank_0(lambda: time.perf_counter() - begun)
        value = scores.bleu if config.evaluation.best_by == "bleu" else -validation.nats
        state = state.after_evaluation(value, seconds, config.checkpoints.keep_best)
        recorder.record_evaluation(
            Evaluated(
                step=state.step,
                validation_loss=validation.nats,
                validation_loss_error=validation.error,
                train_sample_loss=train_sample.nats if train_sample else None,
                train_sample_loss_error=train_sample.error if train_sample else None,
                **scores._asdict(),
                compared_step=compared.step,
                bleu_gain_p=compared.bleu_gain_p,
                is_best=state.best_step == state.step,
                seconds=seconds,
                samples=samples_of(
                    self.sources, translations, self.references, config.evaluation.samples
                ),
            )
        )
        return state

    def _translate(self, objective: Objective) -> list[str]:
        """Returns the translations of all sentences, of which each rank makes its share."""
        config, group = self.config, self.group
        shares = group.gather(
            translate(
                objective.model,
                self.tokenizer,
                self.sources[group.rank :: group.ranks],
                config.decoding.model_copy(update={"beam": config.evaluation.beam}),
                group.device,
                longest=config.data.max_length,
            )
        )
        return [shares[n % group.ranks][n // group.ranks] for n in range(len(self.sources))]


def open_evaluator(
    config: Config,
    run: RunDir,
    group: Group,
    prepared: PreparedData,
    tokenizer: Tokenizer,
    train_shards: Shards,
) -> Evaluator:
    settings = config.evaluation
    micro_batch_tokens = config.training.micro_batch_limit
    validation = prepared.shards("validation")
    train_sample = None
    if settings.train_sample_pairs:
        pairs = fixed_sample(len(train_shards), settings.train_sample_pairs, config.training.seed)
        train_sample = HeldOut(train_shards, pairs, micro_batch_tokens, tokenizer)
    wanted = settings.translate_sentences or None
    sources, references = (side[:wanted] for side in prepared.text("validation"))
    return Evaluator(
        config=config,
        group=group,
        tokenizer=tokenizer,
        validation=HeldOut(validation, range(len(validation)), micro_batch_tokens, tokenizer),
        train_sample=train_sample,
        sources=sources,
        references=references,
        translations=Translations(run, config.data.target_language),
    )
