"""Evaluates the model during training: losses on held-out pairs, and scores of translations.

Losses are measured while training stands still, by all ranks. Scores are too, unless
`evaluation.beside` has a process compute them from the checkpoint of the step: then they decide one
evaluation later (`training.beside`).
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.config import Config
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.translate import translate
from dragoman.distributed.group import Group
from dragoman.evaluation.beside import ScoreAnswer, ScoreRequest
from dragoman.evaluation.heldout import HeldOut, fixed_sample
from dragoman.evaluation.scores import samples_of
from dragoman.evaluation.scoring import Scores, score
from dragoman.evaluation.translations import ComparedWithBest, Translations
from dragoman.model.loss import Objective
from dragoman.rundir import RunDir
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Evaluated, Incident
from dragoman.tokenizer import Tokenizer
from dragoman.training.batch_plan import blocks_in, first_block
from dragoman.training.beside import Scorer
from dragoman.training.checkpointing import Checkpointer
from dragoman.training.recorder import Recorder
from dragoman.training.state import PendingEvaluation, RunState
from dragoman.training.tensors import whole_objective
from dragoman.training.updater import Updater


@dataclass(frozen=True)
class Evaluator:
    """The held-out pairs and texts of a run, which stay the same for all of its evaluations."""

    config: Config
    run: RunDir
    group: Group
    tokenizer: Tokenizer
    validation: HeldOut
    train_sample: HeldOut | None
    sources: list[str]
    """Raw validation sentences that are translated."""
    references: list[str]
    translations: Translations
    scorer: Scorer
    """Asked on rank 0 alone."""

    def evaluate(
        self,
        updater: Updater,
        state: RunState,
        recorder: Recorder,
        ends: Callable[[RunState], bool],
    ) -> RunState:
        """Measures losses and scores, shared out over the ranks, and records them.

        Where scores are computed beside training they are left pending, to be settled at the next
        evaluation, unless the run `ends` with this step. Collective: every rank must call.
        """
        group = self.group
        group.pulse.enter("evaluation")
        begun = time.perf_counter()
        whole = whole_objective(
            updater.objective, updater.translating(), self.config.model, self.tokenizer.size
        )
        losses = self._losses(whole, state)
        # Rank 0 scores, compares and keeps the time; all act on its results.
        if self.scorer.is_used:
            seconds = group.on_rank_0(lambda: time.perf_counter() - begun)
            later = self._with_score(state.after_losses(seconds), losses, None)
            if not ends(later):
                is_best = later.best_step == losses.step
                recorder.record_evaluation(_event(losses, is_best, seconds))
                later = dataclasses.replace(later, pending=losses)
                self.follow(later)
                return later
        translations = self._translate(whole)
        scores = Scores(
            *group.on_rank_0(
                lambda: score(translations, self.references, self.config.data.target_language)
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
        state = self._with_score(state.after_losses(seconds), losses, scores.bleu)
        is_best = state.best_step == state.step
        samples = samples_of(
            self.sources, translations, self.references, self.config.evaluation.samples
        )
        recorder.record_evaluation(
            _event(losses, is_best, seconds, scores, compared, samples=samples)
        )
        return state

    def follow(self, state: RunState) -> None:
        """Has computed beside training what this state expects, and nothing else."""
        if self.group.leads:
            self.scorer.expect(self._request(state.pending) if state.pending else None)

    def poll(self, state: RunState, recorder: Recorder, checkpointer: Checkpointer) -> None:
        """Records scores as soon as they are there; they take effect when they are settled."""
        if state.pending and self.group.leads:
            is_saved = not checkpointer.is_saving(state.pending.step)
            if answer := self.scorer.poll(is_saved):
                self._record(state, state.pending, answer, recorder, beside_s=answer.seconds)

    def settle(
        self,
        state: RunState,
        recorder: Recorder,
        checkpointer: Checkpointer,
        is_stopping: Callable[[], bool],
    ) -> RunState | None:
        """Returns the state that knows the scores which were pending, after waiting for them.

        None: rank 0 `is_stopping`, and they stay pending. Collective: every rank must call.
        """
        pending = state.pending
        if pending is None:
            return state
        self.group.pulse.enter("evaluation")
        settled = self.group.on_rank_0(
            lambda: self._settled(state, pending, recorder, checkpointer, is_stopping)
        )
        if settled is None:
            return None
        bleu, is_used, seconds = settled
        self.scorer.is_used = is_used
        state = self._with_bleu(state, pending, bleu)
        return dataclasses.replace(state, pending=None, elapsed_s=state.elapsed_s + seconds)

    def _settled(
        self,
        state: RunState,
        pending: PendingEvaluation,
        recorder: Recorder,
        checkpointer: Checkpointer,
        is_stopping: Callable[[], bool],
    ) -> tuple[float | None, bool, float] | None:
        """Returns BLEU, whether further scores may be computed beside training, and the seconds."""
        begun = time.perf_counter()
        if checkpointer.is_saving(pending.step):
            checkpointer.finish()
        waited = self.scorer.wait(is_stopping)
        if waited is None:
            return None
        outcome, is_news = waited
        is_used = self.scorer.is_used and not outcome.problem
        if outcome.problem:
            scored = "translated by torch instead" if outcome.answer else "left without scores"
            stops = ", and training stops for those that follow" if self.scorer.is_used else ""
            problem = (
                f"{outcome.problem}; the evaluation of step {pending.step:,} is {scored}{stops}"
            )
            recorder.record_incident(Incident(state.step, "evaluation", problem, ranks=(0,)))
        seconds = time.perf_counter() - begun
        if outcome.answer and is_news:
            beside_s = outcome.answer.seconds if outcome.is_beside else None
            self._record(state, pending, outcome.answer, recorder, beside_s, seconds)
        return outcome.answer.scores.bleu if outcome.answer else None, is_used, seconds

    def _record(
        self,
        state: RunState,
        pending: PendingEvaluation,
        answer: ScoreAnswer,
        recorder: Recorder,
        beside_s: float | None,
        seconds: float = 0.0,
    ) -> None:
        """Records scores that came later than their losses."""
        if problem := answer.compared.problem:
            recorder.record_incident(Incident(state.step, "evaluation", problem, ranks=(0,)))
        then = self._with_bleu(state, pending, answer.scores.bleu)
        recorder.record_evaluation(
            _event(
                *(pending, then.best_step == pending.step, seconds, answer.scores, answer.compared),
                samples=answer.samples,
                arrived_step=state.step,
                beside_s=beside_s,
            )
        )

    def _losses(self, whole: Objective, state: RunState) -> PendingEvaluation:
        validation = self.validation.measure(whole, self.group)
        sample = self.train_sample.measure(whole, self.group) if self.train_sample else None
        return PendingEvaluation(
            step=state.step,
            best_step=state.best_step,
            validation_loss=validation.nats,
            validation_loss_error=validation.error,
            train_sample_loss=sample.nats if sample else None,
            train_sample_loss_error=sample.error if sample else None,
        )

    def _with_score(
        self, state: RunState, losses: PendingEvaluation, bleu: float | None
    ) -> RunState:
        """Returns the state that knows the score that decides, if that is known yet."""
        if self.config.evaluation.best_by == "loss":
            return self._scored(state, losses.step, -losses.validation_loss)
        return self._with_bleu(state, losses, bleu)

    def _with_bleu(
        self, state: RunState, losses: PendingEvaluation, bleu: float | None
    ) -> RunState:
        if bleu is None or self.config.evaluation.best_by == "loss":
            return state
        return self._scored(state, losses.step, bleu)

    def _scored(self, state: RunState, step: int, value: float) -> RunState:
        return state.with_score(step, value, self.config.checkpoints.keep_best)

    def _request(self, pending: PendingEvaluation) -> ScoreRequest:
        config = self.config
        return ScoreRequest(
            run=self.run.root,
            step=pending.step,
            best_step=pending.best_step,
            sources=self.sources,
            references=self.references,
            decoding=config.decoding.model_copy(update={"beam": config.evaluation.beam}),
            longest=config.data.max_length,
            target_language=config.data.target_language,
            samples=config.evaluation.samples,
        )

    def _translate(self, objective: Objective) -> list[str]:
        """Returns the translations of all sentences, of which each rank makes its share."""
        config, group = self.config, self.group
        shares = group.gather(
            translate(
                TorchEngine(objective.model, self.tokenizer, group.device),
                self.tokenizer,
                self.sources[group.rank :: group.ranks],
                config.decoding.model_copy(update={"beam": config.evaluation.beam}),
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
    scorer: Scorer,
) -> Evaluator:
    settings = config.evaluation
    micro_batch_tokens = config.training.micro_batch_limit
    validation = prepared.shards("validation")
    train_sample = None
    if settings.train_sample_pairs:
        among = first_block(blocks_in(train_shards, config), config).numbers()
        sample = fixed_sample(len(among), settings.train_sample_pairs, config.training.seed)
        train_sample = HeldOut(train_shards, among[sample], micro_batch_tokens, tokenizer)
    wanted = settings.translate_sentences or None
    sources, references = (side[:wanted] for side in prepared.text("validation"))
    return Evaluator(
        config=config,
        run=run,
        group=group,
        tokenizer=tokenizer,
        validation=HeldOut(validation, range(len(validation)), micro_batch_tokens, tokenizer),
        train_sample=train_sample,
        sources=sources,
        references=references,
        translations=Translations(run, config.data.target_language),
        scorer=scorer,
    )


def _event(
    losses: PendingEvaluation,
    is_best: bool,
    seconds: float,
    scores: Scores | None = None,
    compared: ComparedWithBest | None = None,
    **more: Any,
) -> Evaluated:
    known: dict[str, Any] = dict.fromkeys(("bleu", "chrf"))
    known |= dict.fromkeys(("bleu_signature", "chrf_signature"), "")
    if scores:
        known = scores._asdict()
    if compared:
        known |= {"compared_step": compared.step, "bleu_gain_p": compared.bleu_gain_p}
    measured = dataclasses.asdict(losses)
    measured.pop("best_step")
    return Evaluated(**measured, **known, is_best=is_best, seconds=seconds, **more)
