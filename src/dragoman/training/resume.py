"""Resumes a run from the newest whole checkpoint of any host, which is sent where it is missing."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import torch.distributed as dist
from pydantic import ValidationError
from torch import Tensor, nn

from dragoman.checkpoints.checkpoint import Checkpoint, Owner, Shapes, check_tensors, tensor_names
from dragoman.checkpoints.finding import Check, Fingerprint, find_equal, newest_whole, whole_steps
from dragoman.checkpoints.names import MODEL, OPTIMIZER, STATE, folder_of
from dragoman.checkpoints.schema import read_state
from dragoman.config import Config, SyncSettings, problems_of
from dragoman.distributed.consensus import all_or_none, raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import CorruptFileError, NamedRank, RunError
from dragoman.training.local_state import local_shapes
from dragoman.training.optimizers import count_keys, optimizer_shapes
from dragoman.training.state import RunState
from dragoman.training.tensors import shapes_of
from dragoman.training.updater import Updater, first_settings

logger = logging.getLogger(__name__)

# Small enough that no message takes long on a slow link, where waiting has a limit.
MESSAGE_BYTES = 4 << 20


class Restored(NamedTuple):
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Holding(NamedTuple):
    """The newest checkpoint of a host, as its local rank 0 has verified it."""

    host: str
    step: int
    sha256: str
    """Its fingerprint: equal ones mean that it does not matter who has it from whom."""
    ranks: int = 0
    """How many have saved it, where each has kept what is its own; 0: all have the same."""


class Choice(NamedTuple):
    source: int
    """The rank that sends the checkpoint where it is missing."""
    step: int
    sha256: str


def check_for(model: nn.Module, config: Config) -> Check:
    """Returns a check that refuses checkpoints from which this model cannot resume."""
    settings = config.optimizer
    weights, counted = shapes_of(model), {*count_keys(settings)}

    def check(checkpoint: Checkpoint) -> None:
        path = checkpoint.folder / STATE
        try:
            state = RunState.from_json(read_state(checkpoint.folder).run)
        except ValidationError as error:
            raise CorruptFileError(f"{path}: {problems_of(error)}") from error
        if state.step != checkpoint.step:
            raise CorruptFileError(f"{path}: its run is at another step, {state.step:,}")
        check_tensors(checkpoint.folder / MODEL, weights)
        # Where every update so far was skipped, the optimizer has no state yet, and counts nothing.
        has_counts = bool(state.optimizer)
        if has_counts and state.optimizer.keys() != counted:
            raise CorruptFileError(f"{path}: holds the counts of another optimizer")
        is_local, others = sync_settings_of(state, config).is_local, cast(Shapes, {})
        if has_counts or not counted:
            others = optimizer_shapes(weights, settings, with_weights=is_local)
        if is_local:
            names = tensor_names(checkpoint.folder / OPTIMIZER)
            others = local_shapes(weights, others, names)
        check_tensors(checkpoint.folder / OPTIMIZER, others, may_be_empty=not has_counts)

    return check


def fingerprint_for(config: Config) -> Fingerprint:
    """Returns what tells checkpoints apart: usually their manifests, which list all hashes.

    Where ranks take steps of their own, hosts hold the moments of their own ranks, and what they
    have in common are the weights.
    """
    has_own_parts = config.sync.is_local or config.sync.mode == "auto"
    return Checkpoint.weights_sha256 if has_own_parts else Checkpoint.manifest_sha256


def sync_settings_of(state: RunState, config: Config) -> SyncSettings:
    """Returns with which settings a checkpoint was saved: with auto, those it had chosen."""
    return SyncSettings(**state.sync) if state.sync else first_settings(config.sync)


def restore(roots: Sequence[Path], owner: Owner, updater: Updater, group: Group) -> RunState:
    """Loads the newest checkpoint of any host; returns its state, or that of a run without one.

    Collective: every rank must call.
    """
    check = check_for(updater.model, updater.config)
    fingerprint = fingerprint_for(updater.config)
    checkpoint = newest_checkpoint(roots, owner, check, group, fingerprint)
    if checkpoint is None:
        return RunState()
    state = RunState.from_json(checkpoint.state["run"])
    updater.adopt(sync_settings_of(state, updater.config), state.step)
    updater.load(checkpoint.model, checkpoint.optimizer, state.optimizer)
    if state.loss_scaling:
        updater.scaler.load_state_dict(state.loss_scaling)
    return state


def newest_checkpoint(
    roots: Sequence[Path],
    owner: Owner,
    check: Check,
    group: Group,
    fingerprint: Fingerprint = Checkpoint.manifest_sha256,
) -> Restored | None:
    """Returns the same checkpoint on every rank; None: no host has any.

    Collective: every rank must call.
    """
    holdings = _all_holdings(roots, owner, check, group, fingerprint)
    if earlier := earlier_step_of_all(holdings, group.ranks):
        step_before = _holdings_at(earlier, roots, owner, check, group, fingerprint)
        holdings = step_before or holdings
    choice = choose(holdings)
    if choice is None:
        return None
    mine = None
    if _is_vouched_for(choice, holdings, group.host):
        mine = find_equal(roots, choice.step, choice.sha256, fingerprint)
    restored = all_or_none(
        group, lambda: Restored(mine.model(), mine.optimizer(), mine.state()) if mine else None
    )
    lacking = [rank for rank, has in enumerate(group.gather(mine is not None)) if not has]
    if lacking:
        if group.leads:
            sender = holdings[choice.source]
            assert sender
            logger.info(
                f"the checkpoint of step {choice.step:,} comes from "
                f"{NamedRank(choice.source, sender.host)} to {len(lacking)} rank(s) without it"
            )
        restored = _sent(restored, choice.source, lacking, group)
    return restored


def choose(holdings: Sequence[Holding | None]) -> Choice | None:
    """Returns the newest step that any rank holds, from the lowest rank that holds it."""
    held = [(rank, holding) for rank, holding in enumerate(holdings) if holding]
    if not held:
        return None
    source, newest = max(held, key=lambda pair: (pair[1].step, -pair[0]))
    return Choice(source, newest.step, newest.sha256)


def earlier_step_of_all(holdings: Sequence[Holding | None], ranks: int) -> int | None:
    """Returns the step to look for on all hosts where the newest would lack the moments of some.

    A kill may come when one host has saved a step, and another is about to. The step before has the
    moments of all, if as many ranks have saved it as there are now: after a host was lost or has
    come back, there is nothing to be gained. `holdings` are None for ranks that have not looked.
    """
    held = [holding for holding in holdings if holding]
    newest = max(held, key=lambda holding: holding.step, default=None)
    if newest is None or newest.ranks != ranks:
        return None
    oldest = min(holding.step for holding in held)
    return oldest if oldest < newest.step else None


def _holdings_at(
    step: int,
    roots: Sequence[Path],
    owner: Owner,
    check: Check,
    group: Group,
    fingerprint: Fingerprint,
) -> list[Holding | None]:
    """Returns who holds the checkpoint of this step; empty unless every host does, as its newest
    or the one before. Collective: every rank must call."""
    holding = None
    if group.local_rank == 0:
        newest_two = whole_steps(roots, owner, check)[:2]
        folders = [root / folder_of(step) for root in roots]
        folder = next((each for each in folders if each.is_dir()), None)
        if step in newest_two and folder:
            holding = Holding(group.host, step, fingerprint(Checkpoint(folder)))
    answers = group.gather([group.local_rank == 0, holding])
    holdings = [Holding(*content) if content else None for _, content in answers]
    lacks = any(looked and not content for looked, content in answers)
    return [] if lacks or len({each.sha256 for each in holdings if each}) > 1 else holdings


def _all_holdings(
    roots: Sequence[Path], owner: Owner, check: Check, group: Group, fingerprint: Fingerprint
) -> list[Holding | None]:
    holding, failure = None, ""
    if group.local_rank == 0:  # hashing gigabytes once a host is enough
        try:
            newest = newest_whole(roots, owner, check)
        except RunError as error:
            failure = f"{group.host}: {error}" if group.ranks > 1 else str(error)
        else:
            if newest:
                ranks = int(newest.state().get("ranks", 0))
                holding = Holding(group.host, newest.step, fingerprint(newest), ranks)
    answers = group.gather([holding, failure])
    holdings = [Holding(*content) if content else None for content, _ in answers]
    # Checkpoints that are torn on one host do no harm while another has a whole one.
    failures = [failure for _, failure in answers if failure]
    if failures and not any(holdings):
        raise_on_all_ranks(group, RunError(failures[0]))
    return holdings


def _is_vouched_for(choice: Choice, holdings: Sequence[Holding | None], host: str) -> bool:
    wanted = (host, choice.step, choice.sha256)
    return any(wanted == holding[:3] for holding in holdings if holding)


def _sent(
    content: Restored | None, source: int, lacking: Sequence[int], group: Group
) -> Restored | None:
    """Returns the content, sent by the source where it is missing.

    Collective: every rank must call.
    """
    outline = None
    if group.rank == source:
        assert content
        outline = [_outline(content.model), _outline(content.optimizer), content.state]
    model, optimizer, state = group.gather(outline)[source]
    # A group of their own, so that nothing travels to those who have it; gloo, as all messages.
    members = sorted({source, *lacking})
    channel = dist.new_group(members, backend="gloo")
    if group.rank in members:
        if content is None:
            content = Restored(_empty(model), _empty(optimizer), state)
        for tensor in (*content.model.values(), *content.optimizer.values()):
            _broadcast(tensor, source, channel)
        dist.destroy_process_group(channel)
    return content


def _broadcast(tensor: Tensor, source: int, channel: Any) -> None:
    flat = tensor.view(-1)  # not a copy, or the parts would be received for nothing
    for part in torch.split(flat, MESSAGE_BYTES // flat.element_size()):
        dist.broadcast(part, src=source, group=channel)


_Outline = list[tuple[str, list[int], str]]


def _outline(tensors: dict[str, Tensor]) -> _Outline:
    """Returns name, shape and type of each tensor, of JSON values."""
    return [
        (name, list(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in tensors.items()
    ]


def _empty(outline: _Outline) -> dict[str, Tensor]:
    return {name: torch.empty(shape, dtype=getattr(torch, kind)) for name, shape, kind in outline}
