"""When a run is saved, where to, and by which ranks; the work itself is done beside training."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import nn

from dragoman.checkpoints.background import BackgroundSaver, Place, Saved
from dragoman.checkpoints.checkpoint import Owner
from dragoman.checkpoints.finding import all_checkpoints, newest_whole, whole_steps
from dragoman.checkpoints.frequency import SaveClock
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
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.group import Group
from dragoman.errors import RunError
from dragoman.rundir import RunDir
from dragoman.shards.passport import Passport
from dragoman.tokenizer import Tokenizer
from dragoman.training.resume import check_for
from dragoman.training.state import RunState
from dragoman.training.tensors import optimizer_tensors, whole_tensors
from dragoman.training.updater import Updater


def roots_of(run: RunDir, settings: CheckpointSettings) -> list[Path]:
    """Where a host's checkpoints may be, the first of equally new ones to be taken."""
    if not settings.memory_folder:
        return [run.checkpoints]
    return [run.checkpoints, memory_root(Path(settings.memory_folder), run.root)]


def forget_memory(roots: Sequence[Path]) -> None:
    """Remove what is not on disk; `roots` are those of `roots_of`."""
    for root in roots[1:]:
        remove_root(root)


def owner_of(run_id: str, config: Config, passport: Passport) -> Owner:
    """What makes a checkpoint this run's own: of another id, data, model or batches it is foreign.

    Checkpoints of versions that knew of no ids are judged by the rest.
    """
    shape = config.model.model_dump_json(exclude={"preset"})
    batches = config.training.model_dump_json(
        include={"seed", "tokens_per_update", "micro_batch_tokens"}
    )
    return {"id": run_id, "data": passport.content_hash, "model": shape, "batches": batches}


class Saving:
    """Decides on rank 0's clock, writes on every rank that keeps a copy."""

    def __init__(
        self,
        config: Config,
        run: RunDir,
        group: Group,
        tokenizer: Tokenizer,
        owner: Owner,
        state: RunState,
    ) -> None:
        """Collective: every rank must call."""
        self._config, self._group = config, group
        self._settings = settings = config.checkpoints
        self.roots = roots_of(run, settings)
        self.owner = owner
        has_its_own = _has_a_folder_of_its_own(run, group)  # collective, so not only where needed
        self._keeps = group.leads or (settings.every_host and has_its_own)
        self._saver = BackgroundSaver(tokenizer.model, self.owner)
        self._vocabulary = tokenizer.size
        self._clock = SaveClock(
            settings.hours_between_failures, settings.lost_minutes, state.elapsed_s
        )
        self._last_step = state.step

    def __enter__(self) -> "Saving":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._saver.__exit__(kind, error, _)

    @property
    def is_busy(self) -> bool:
        """A save is in flight. Training does not wait for a slow disk, and saves as soon as it is
        ready; only rank 0's answer counts."""
        return self._saver.is_busy

    def is_due(self, state: RunState, step_s: float) -> bool:
        """Whether to save after the step that comes next, which takes so long; only rank 0's answer
        counts."""
        every_steps = self._settings.every_steps
        if every_steps is None:
            return self._clock.is_due(state.elapsed_s + step_s, next_step_s=step_s)
        return (state.step + 1) // every_steps > self._last_step // every_steps

    def in_memory_is_due(self, state: RunState) -> bool:
        return len(self.roots) > 1 and state.step % self._settings.memory_every_steps == 0

    def begin(self, state: RunState, updater: Updater, model: Any, must: bool) -> None:
        """Save to disk. A host whose disk is still at the save before leaves this one out, unless
        it `must`: then training waits for that. Collective: every rank must call.
        """
        place = Place(
            self.roots[0],
            self._settings.keep_last,
            keep=[int(step) for step in state.scores] if self._settings.keep_best else [],
            trusted_step=state.numbers.trusted_step,
            best_step=state.best_step,
        )
        self._begin(state, updater, model, place, must)
        self._clock.begun(state.elapsed_s)
        self._last_step = state.step

    def begin_in_memory(self, state: RunState, updater: Updater, model: Any) -> None:
        """Collective: every rank must call."""
        self._begin(state, updater, model, Place(self.roots[1], KEPT_IN_MEMORY), must=False)

    def wait_until_copied(self) -> float:
        return self._saver.wait_until_copied()

    def finish(self) -> None:
        self._saver.finish()

    def results(self, step_s: float) -> Sequence[Saved]:
        """What has been saved since the last call; `step_s` is what the step took meanwhile."""
        results = self._saver.results()
        self._clock.step(step_s, while_saving=self._saver.is_busy or bool(results))
        for saved in results:
            if saved.root == self.roots[0] and saved.error:
                self._clock.failed(saved.in_flight_s)
            elif saved.root == self.roots[0]:
                self._clock.saved(saved.stall_s, saved.in_flight_s)
        return results

    def forget_memory(self) -> None:
        """A run that is finished needs no snapshots between its checkpoints."""
        if self._keeps:
            forget_memory(self.roots)

    def whole_steps(self, model: nn.Module) -> list[int]:
        """Of this host's checkpoints that the model can go back to."""
        return whole_steps(self.roots, self.owner, check_for(model))

    def newest_step(self) -> int:
        """Of this host's checkpoints that can be gone on from; 0: there is none."""
        try:
            newest = newest_whole(self.roots, self.owner)
        except RunError:
            return 0
        return newest.step if newest else 0

    def forget_after(self, step: int) -> None:
        """Remove checkpoints of later steps, of which something is wrong."""
        for root in self.roots:
            if self._keeps:
                earlier = [c.step for c in all_checkpoints(root) if c.step <= step]
                prune(root, earlier, self.owner)

    def _begin(
        self, state: RunState, updater: Updater, model: Any, place: Place, must: bool
    ) -> None:
        weights = whole_tensors(model.state_dict(), kept=self._keeps)
        adam = whole_tensors(optimizer_tensors(updater.optimizer, model), kept=self._keeps)
        if not self._keeps:
            return
        content = {
            "run": state.to_json(),
            "model": self._config.model.model_dump(mode="json"),
            "vocabulary": self._vocabulary,
            "source_language": self._config.data.source_language,
            "target_language": self._config.data.target_language,
        }
        self._saver.begin(state.step, weights, adam, content, [place], must)


def _has_a_folder_of_its_own(run: RunDir, group: Group) -> bool:
    """Whether this is the first rank of its host and no lower rank writes to the same folder.

    Collective: every rank must call.
    """
    nonce = group.broadcast(secrets.token_hex(8))
    is_first = group.local_rank == 0
    all_or_none(group, lambda: leave_mark(run.root, nonce, group.rank) if is_first else None)
    is_own = is_first and not sees_mark(run.root, nonce, range(group.rank))
    group.gather(None)  # all have looked
    if is_first:
        remove_mark(run.root, nonce, group.rank)
    return is_own
