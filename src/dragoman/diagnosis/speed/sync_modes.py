"""What other ways to synchronize would do for a run, forecast from its own figures. Pure.

The split of its steps and its link come in; a forecast of each mode, and the settings of the
mildest one that is enough, go out. The rate of the link is such that the forecast of the mode that
the run has is what was measured, so that all other forecasts are relative to that.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.config import Config, SyncSettings
from dragoman.diagnosis.commands import with_settings
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Link, or_zero
from dragoman.diagnosis.speed.causes import Causes
from dragoman.diagnosis.speed.what_if import hidden_network_s
from dragoman.distributed.ring_bytes import mean_bytes_of_mode
from dragoman.errors import ConfigError
from dragoman.forecast import sync_modes as forecasts
from dragoman.forecast.sync_modes import (
    LADDER,
    OPT_IN,
    Forecast,
    Workload,
    choose,
    collectives_of,
    explicit_keys,
    forecast,
    seconds_beside,
)

CLEARLY_FASTER = 1.05
ALSO_CHANGED: Sequence[Mapping[str, object]] = ({}, {"optimizer.average_decay": 0.0})
"""What may be changed together with the mode, where the recipe refuses the mode alone."""


class SyncModes(NamedTuple):
    now_s: float
    """A step in the mode that the run has, as measured."""
    now_bytes: float
    """That a host must send for it."""
    others: Sequence[Forecast]
    """Of the ladder's other modes and the one that is opt-in, the mildest first."""
    chosen: Forecast | None
    """The mildest that is enough, or comes nearest to it; None: none is clearly faster and allowed
    with the run's other settings."""
    settings: Mapping[str, object]
    """The keys that make the run one of the chosen mode."""

    def speed_up(self, then: Forecast) -> float:
        return self.now_s / then.step_s if then.step_s else math.nan


def modes_of(run: RunFacts, causes: Causes) -> SyncModes | None:
    """Returns None where the network does not hold the run back, or does not any more, or where
    there is but one host."""
    found, hosts = causes.found, [*run.attempts[-1].hosts.values()] if run.attempts else []
    if found.verdict not in ("network-bound", "latency-bound") or found.until_step is not None:
        return None
    parameters = run.record.model_size.parameters
    return modes_for(run.config, parameters, hosts, found.split, causes.speed.link)


def modes_for(
    config: Config, parameters: int, hosts: Sequence[str], split: StepSplit, link: Link
) -> SyncModes | None:
    """Returns the forecasts for a run that the network holds back; None where there is but one
    host, or each holds a part of the model. `hosts` are those of each rank."""
    if config.training.sharding == "full" or len(set(hosts)) < 2 or not split.network_s > 0:
        return None
    own, on_host = config.sync, max(Counter(hosts).values())
    workload = Workload(
        parameters=parameters,
        ranks=len(hosts),
        ranks_on_host=on_host,
        hosts=len(set(hosts)),
        compute_s=split.step_s - split.network_s,
        backward_s=split.backward_s,
    )
    workload, way = measured(own, workload, split, link)
    now = forecast(own, workload, way)._replace(step_s=split.step_s)
    ladder = [_for_hosts(settings, on_host) for settings in (*LADDER, OPT_IN)]
    others = [forecast(each, workload, way) for each in ladder if not _is_same(each, own)]
    changes = {
        each.settings: settings
        for each in others
        if each.settings.mode != OPT_IN.mode
        and each.bytes_per_step < now.bytes_per_step
        and split.step_s >= CLEARLY_FASTER * each.step_s
        and (settings := settings_for(config, each.settings))
    }
    chosen = choose(workload, way, [*changes])[1] if changes else None
    return SyncModes(
        now_s=split.step_s,
        now_bytes=now.bytes_per_step,
        others=others,
        chosen=chosen,
        settings=changes[chosen.settings] if chosen else {},
    )


def measured(
    own: SyncSettings, workload: Workload, split: StepSplit, link: Link
) -> tuple[Workload, forecasts.Link]:
    """Returns the link on which the run's own mode takes what it has taken, and the workload with
    no more computing to hide behind than gradients were hidden behind.

    The rate is that of the mode's own bytes: headers and whatever else passes take their share.
    """
    steps, beside_s = own.window_steps, seconds_beside(own, workload)
    window = split._replace(network_s=steps * split.network_s, backward_s=beside_s)
    of_window = link._replace(bytes_per_step=steps * link.bytes_per_step)
    hidden_s = or_zero(hidden_network_s(window, of_window)) / steps
    collectives = collectives_of(own, workload.parameters)
    latency_s = min(or_zero(split.small_message_s), split.network_s / collectives)
    carrying_s = split.network_s + hidden_s - collectives * latency_s
    sent = mean_bytes_of_mode(
        own, workload.parameters, workload.ranks, workload.ranks_on_host, workload.hosts
    )
    if not own.is_local:
        workload = workload._replace(backward_s=hidden_s)
    rate = sent / carrying_s if carrying_s > 0 else math.inf
    return workload, forecasts.Link(rate, latency_s)


def settings_for(config: Config, settings: SyncSettings) -> Mapping[str, object]:
    """Returns the keys to change in this config for such settings, and what else has to change with
    them; empty: its recipe refuses them."""
    keys: dict[str, object] = {
        f"sync.{key}": value for key, value in explicit_keys(settings).items()
    }
    if config.sync.is_local:
        # The config of a run has what once followed from other keys, and would keep it.
        follow = ["fragments", "delay"]
        if config.sync.mode != settings.mode:
            follow += ["outer_rate", "outer_momentum"]
        for key in follow:
            if getattr(config.sync, key) != getattr(settings, key):
                keys[f"sync.{key}"] = getattr(settings, key)
    for also in ALSO_CHANGED:
        changes = {**keys, **also}
        try:
            with_settings(config, changes)
        except ConfigError:
            continue
        return changes
    return {}


def _for_hosts(settings: SyncSettings, ranks_on_host: int) -> SyncSettings:
    """Returns the settings with which the ranks of a host are one: they sum their gradients without
    the network, so that fewer take steps of their own, and fewer bytes pass."""
    if not settings.is_local or ranks_on_host == 1:
        return settings
    return settings.model_copy(update={"group": "host"})


def _is_same(settings: SyncSettings, own: SyncSettings) -> bool:
    return all(
        getattr(settings, key) == getattr(own, key) for key in ("mode", "local_steps", "wire")
    )
