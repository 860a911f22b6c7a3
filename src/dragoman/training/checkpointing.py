"""When checkpoints are saved, where to, and by which ranks; they are written beside training."""

import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from dragoman.checkpoints.background import BackgroundSaver, Place, Saved
from dragoman.checkpoints.checkpoint import Owner
from dragoman.checkpoints.finding import all_checkpoints, newest_whole, whole_steps
from dragoman.checkpoints.frequency import SaveClock
from dragoman.checkpoints.mirroring import Mirror
from dragoman.checkpoints.places import (
    KEPT_IN_MEMORY,
    leave_mark,
    memory_root,
    remove_mark,
    remove_root,
    sees_mark,
)
from dragoman.checkpoints.storage import prune
from dragoman.config import CheckpointSettings, Config
from dragoman.distributed.consensus import all_or_none, raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import RunError
from dragoman.rundir import RunDir
from dragoman.shards.passport import Passport
from dragoman.telemetry.events import CheckpointSaved, Incident
from dragoman.tokenizer import Tokenizer
from dragoman.training.local_state import keeper_of_each
from dragoman.training.recorder import Recorder
from dragoman.training.resume import check_for
from dragoman.training.state import RunState
from dragoman.training.tensors import whole_tensors
from dragoman.training.updater import Updater

logger = logging.getLogger(__name__)


def roots_of(run: RunDir, settings: CheckpointSettings) -> list[Path]:
    """Returns where a host's checkpoints may be; of equally new ones the first is taken."""
    if not settings.memory_folder:
        return [run.checkpoints]
    return [run.checkpoints, memory_root(Path(settings.memory_folder), run.root)]


def forget_memory(roots: Sequence[Path]) -> None:
    """Removes what is not on disk; `roots` are those of `roots_of`."""
    for root in roots[1:]:
        remove_root(root)


def owner_of(run_id: str, config: Config, passport: Passport) -> Owner:
    """Returns what marks a checkpoint as this run's: its id, data, model, batches and sync.mode.

    Checkpoints of versions that knew of no ids are judged by the rest.
    """
    shape = config.model.model_dump_json(exclude={"preset"})
    batches = config.training.model_dump_json(
        include={"seed", "tokens_per_update", "micro_batch_tokens"}
    )
    return {
        "id": run_id,
        "data": passport.content_hash,
        "model": shape,
        "batches": batches,
        "sync.mode": config.sync.mode,
    }


class Checkpointer:
    """Decides on rank 0's clock, writes on every rank that keeps a copy."""

    def __init__(
        self,
        config: Config,
        run: RunDir,
        group: Group,
        tokenizer: Tokenizer,
        owner: Owner,
        state: RunState,
        mirror: Mirror | None = None,
    ) -> None:
        """Collective: every rank must call."""
        self._config, self._group = config, group
        self._settings = settings = config.checkpoints
        self.roots = roots_of(run, settings)
        self.owner = owner
        has_its_own = _has_a_folder_of_its_own(run, group)  # collective, so not only where needed
        self._keeps = group.leads or (settings.every_host and has_its_own)
        self._mirror = mirror if has_its_own else None
        if self._mirror:
            self._mirror.begin()
        self._keepers = keeper_of_each(group.gather(group.host), group.gather(self._keeps))
        self._saver = BackgroundSaver(tokenizer.model, self.owner)
        self._vocabulary = tokenizer.size
        self._clock = SaveClock(
            settings.hours_between_failures, settings.lost_minutes, state.elapsed_s
        )
        self._last_step = state.step
        self._saving_step: int | None = None

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._saver.__exit__(kind, error, _)

    def end_waiting_with(self, signals: Callable[[], int]) -> None:
        """Lets one more request to stop end the wait for the last upload to the mirror."""
        if self._mirror:
            self._mirror.signals = signals

    @property
    def is_busy(self) -> bool:
        """Whether a save is in flight; only rank 0's answer counts.

        Training does not wait for a slow disk, and saves as soon as it is ready.
        """
        return self._saver.is_busy

    def is_saving(self, step: int) -> bool:
        """Returns whether this attempt's checkpoint of a step is still on its way to this disk."""
        return self._saving_step == step

    def is_due(self, state: RunState, step_s: float) -> bool:
        """Returns whether to save after the next step, which takes so long, as rank 0 sees it."""
        every_steps = self._settings.every_steps
        if every_steps is None:
            return self._clock.is_due(state.elapsed_s + step_s, next_step_s=step_s)
        return (state.step + 1) // every_steps > self._last_step // every_steps

    def in_memory_is_due(self, state: RunState) -> bool:
        every_steps = self._settings.memory_every_steps
        return len(self.roots) > 1 and state.step % every_steps == 0

    def save(self, state: RunState, updater: Updater, must: bool) -> None:
        """Begins to save to disk, beside the next steps.

        A host whose disk is still at the save before leaves this one out, unless it `must`: then
        training waits for that. Collective: every rank must call.
        """
        self._group.pulse.enter("checkpoint")
        place = Place(
            self.roots[0],
            self._settings.keep_last,
            keep=[int(step) for step in state.scores] if self._settings.keep_best else [],
            trusted_step=state.divergence.trusted_step,
            quiet_step=state.divergence.quiet_step,
            scored_later=state.pending.step if state.pending else None,
            best_step=state.best_step,
        )
        self._saving_step = state.step
        self._begin(state, updater, place, must)
        self._clock.begun(state.elapsed_s)
        self._last_step = state.step

    def save_last(self, state: RunState, updater: Updater, recorder: Recorder) -> None:
        """Saves to disk and waits for it; fails where rank 0's disk does, with what is lost.

        Collective: every rank must call.
        """
        self.save(state, updater, must=True)
        self.finish()
        failure = self.record_saves(recorder, 0.0, needed_step=state.step)
        message = self._group.broadcast(str(failure) if failure else "")
        if message:
            own_newest = self._newest_step() if self._group.local_rank == 0 else 0
            lost = lost_steps(state.step, max(self._group.gather(own_newest)))
            raise_on_all_ranks(self._group, RunError(f"{message}; {lost}"))

    def save_in_memory(self, state: RunState, updater: Updater) -> None:
        """Begins to save to the folder in memory. Collective: every rank must call."""
        self._begin(state, updater, Place(self.roots[1], KEPT_IN_MEMORY), must=False)

    def wait_until_copied(self) -> float:
        return self._saver.wait_until_copied()

    def finish(self) -> None:
        self._saver.finish()

    def record_saves(
        self, recorder: Recorder, step_s: float, needed_step: int | None = None
    ) -> Exception | None:
        """Records what has been saved since the last call, a failing disk once.

        `step_s` is what the step took meanwhile. Returns on rank 0 why the checkpoint of
        `needed_step` could not be saved.
        """
        failure = None
        for saved in self._results(step_s):
            if saved.error is None and saved.folder:
                if self._mirror and saved.root == self.roots[0]:
                    self._mirror.look()
                recorder.events.emit(
                    CheckpointSaved(saved.step, saved.folder.name, saved.bytes, saved.write_s)
                )
            elif saved.error and saved.step == needed_step and self._group.leads:
                failure = saved.error
            elif saved.error and saved.is_news:
                recorder.events.emit(Incident(saved.step, "checkpoint", str(saved.error)))
                logger.warning(f"{saved.error}; training goes on and tries again later")
        for news in self._mirror.news() if self._mirror else ():
            rank = (self._group.rank,)
            recorder.events.emit(Incident(news.step, "mirror", news.message, ranks=rank))
            (logger.warning if news.is_failure else logger.info)(news.message)
        return failure

    def forget_memory(self) -> None:
        """Removes the snapshots between checkpoints, which a finished run does not need."""
        if self._keeps:
            forget_memory(self.roots)

    def whole_steps(self, updater: Updater) -> list[int]:
        """Returns the steps of this host's checkpoints that the run can go back to."""
        check = check_for(updater.model, updater.config)
        return whole_steps(self.roots, self.owner, check)

    def remove_after(self, step: int) -> None:
        """Removes the checkpoints of later steps, which may hold a divergence."""
        for root in self.roots:
            if self._keeps:
                earlier = [c.step for c in all_checkpoints(root) if c.step <= step]
                prune(root, earlier, self.owner)

    def _newest_step(self) -> int:
        """Returns the newest of this host's whole checkpoints; 0: there is none."""
        try:
            newest = newest_whole(self.roots, self.owner)
        except RunError:
            return 0
        return newest.step if newest else 0

    def _results(self, step_s: float) -> Sequence[Saved]:
        results = self._saver.results()
        self._clock.step(step_s, while_saving=self._saver.is_busy or bool(results))
        for saved in results:
            if (saved.root, saved.step) == (self.roots[0], self._saving_step):
                self._saving_step = None
            if saved.root == self.roots[0] and saved.error:
                self._clock.failed(saved.in_flight_s)
            elif saved.root == self.roots[0]:
                self._clock.saved(saved.stall_s, saved.in_flight_s)
        return results

    def _begin(self, state: RunState, updater: Updater, place: Place, must: bool) -> None:
        translating = updater.translating() or updater.model.state_dict()
        weights = whole_tensors(translating, kept=self._keeps)
        others = updater.state_tensors(self._keepers)
        if not self._keeps:
            return
        content = {
            "run": state.to_json(),
            "model": self._config.model.model_dump(mode="json"),
            "vocabulary": self._vocabulary,
            "source_language": self._config.data.source_language,
            "target_language": self._config.data.target_language,
        }
        if updater.outer:  # of which each host holds its own part
            content["ranks"] = self._group.ranks
        self._saver.begin(state.step, weights, others, content, [place], must)


def lost_steps(step: int, newest: int) -> str:
    """Returns a sentence: what is lost where `step` was done and `newest` is the last saved."""
    if newest >= step:
        return f"no step is lost, since a whole checkpoint of step {step:,} was found"
    kept = f"the newest step that is saved is {newest:,}" if newest else "no step has been saved"
    return f"{kept}, so {step - newest:,} step(s) are lost"


def _has_a_folder_of_its_own(run: RunDir, group: Group) -> bool:
    """Returns whether this is the first rank of its host and no lower rank writes to its folder.

    Collective: every rank must call.
    """
    nonce = group.broadcast(secrets.token_hex(8))
    is_first = group.local_rank == 0
    all_or_none(group, lambda: leave_mark(run.root, nonce, group.rank) if is_first else None)
    is_own = is_first and not sees_mark(run.root, nonce, range(group.rank))
    group.gather(None)  # so that no mark is removed before all have looked for it
    if is_first:
        remove_mark(run.root, nonce, group.rank)
    return is_own
