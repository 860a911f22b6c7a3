"""Before the first step: all ranks run the same code on the same config, data and run, or none."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from dragoman import __version__
from dragoman.checkpoints.run_id import known_id
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none, odd_ranks, raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import NamedRank, UserError
from dragoman.rundir import RunDir
from dragoman.shards.passport import Passport
from dragoman.training.claim import claim_run, shared_settings
from dragoman.version import code_hash

_SAME_CODE = "bring the same version of the project to every host, as `dragoman setup` does"
# What is compared, in this order, and what to do where it differs.
_ADVICE = {
    "version of Dragoman": _SAME_CODE,
    "code of Dragoman": _SAME_CODE,
    "version of torch": "install the same on every host",
    "kind of device": "set training.device to what every host has",
    "config": "give every rank the same recipe and the same --set",
    "prepared data": "copy the folder of one host to the others, or prepare it there again",
}


def check_agreement(group: Group, config: Config, passport: Passport) -> None:
    """Stops all ranks where one differs, naming it. Collective: every rank must call."""
    settings = shared_settings(config)
    facts = group.gather(
        {
            "host": group.host,
            "version of Dragoman": __version__,
            "code of Dragoman": code_hash(),
            "version of torch": str(torch.__version__),
            "kind of device": group.device.type,
            "config": hashlib.sha256(json.dumps(settings).encode()).hexdigest(),
            "prepared data": passport.content_hash,
        }
    )
    difference = first_difference(facts)
    if difference and difference.what == "config":
        # Only now the whole config travels, to name the key.
        settings_of = group.gather(settings)
        hosts = [{"host": fact["host"]} for fact in facts]
        difference = first_difference([a | b for a, b in zip(hosts, settings_of, strict=True)])
    if difference:
        advice = _ADVICE.get(difference.what, _ADVICE["config"])
        raise_on_all_ranks(group, UserError(f"{difference.sentence}; {advice}"))


class Difference(NamedTuple):
    what: str
    sentence: str
    """Who differs from most of the others, in what."""


def first_difference(facts: Sequence[dict[str, Any]]) -> Difference | None:
    """Returns the first fact that differs between ranks, their hosts apart; None: all are equal."""
    for what in dict.fromkeys(key for fact in facts for key in fact if key != "host"):
        values = [fact.get(what) for fact in facts]
        odd = odd_ranks(values)
        if odd is None:  # no side has the majority, so rank 0's is the measure
            odd = [rank for rank, value in enumerate(values) if value != values[0]]
        if odd:
            usual = next(value for rank, value in enumerate(values) if rank not in odd)
            others = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
            return Difference(
                what,
                f"{NamedRank(odd[0], facts[odd[0]]['host'])}{others} differs from the rest in its "
                f"{what}: {_shown(values[odd[0]])} instead of {_shown(usual)}",
            )
    return None


def _shown(value: Any) -> str:
    # Twelve digits distinguish two hashes and can be read aloud.
    is_hash = isinstance(value, str) and len(value) == hashlib.sha256().digest_size * 2
    return value[:12] if is_hash else repr(value)


def claim_on_every_host(run: RunDir, config: Config, group: Group) -> str:
    """Claims the run directory of each host; returns the run's id, the same on all.

    Collective: every rank must call.
    """
    # A host that is new may lead others that have the run already.
    known = group.gather(all_or_none(group, lambda: known_id(run)))
    found = next(filter(None, known), "")
    # Rank 0 first: where hosts share the folder, two at once would be in each other's way.
    run_id: str = group.on_rank_0(lambda: claim_run(run, config, found))
    is_first_of_another_host = group.local_rank == 0 and not group.leads
    all_or_none(group, lambda: claim_run(run, config, run_id) if is_first_of_another_host else None)
    return run_id
