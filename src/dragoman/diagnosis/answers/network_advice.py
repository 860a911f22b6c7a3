"""What to do about the network, or about whatever else holds the steps back."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.diagnosis.commands import other_launcher, recipe_lines, train_command
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.phrasing import bit_rate, count, listed, seconds, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import BOUND_SHARE, shares_of
from dragoman.diagnosis.speed.causes import Causes
from dragoman.diagnosis.speed.link_use import counted_against_predicted
from dragoman.diagnosis.speed.sync_modes import CLEARLY_FASTER, SyncModes
from dragoman.diagnosis.speed.teams import teams_of
from dragoman.diagnosis.speed.what_if import projected, with_faster_link
from dragoman.forecast.sync_modes import QUALITY_COST, Forecast
from dragoman.telemetry.read.tables import known

WORTH_MENTIONING = BOUND_SHARE / 2
MOST = 3
LARGER_UPDATES = 2
"""Times the tokens: larger ones save more, and learn less from each token."""


def advice_on(run: RunFacts, causes: Causes, modes: SyncModes | None) -> Sequence[Advice]:
    """Returns advice on what holds at the end of the run; what is over may come back. `modes`: the
    other ways to synchronize, where the network holds it back."""
    # A host that has left the run cannot be asked.
    what_to_do = [each for each in _advice(run, causes, modes) if each.command][:MOST]
    return advice.for_when_it_returns(causes.found, what_to_do)


def _advice(run: RunFacts, causes: Causes, modes: SyncModes | None) -> list[Advice]:
    found, shares = causes.found, shares_of(causes.found.split)
    match found.verdict:
        case "network-bound":
            return [
                *_look_at_link(run, causes),
                *_other_traffic(run, causes),
                *_less_traffic(run, causes, modes),
            ]
        case "latency-bound":
            return _less_traffic(run, causes, modes)
        case "straggler":
            unevenly = causes.is_shared_unevenly
            return advice.on_lateness(run, found.late, found.split, causes.crowded, unevenly)
        case "input-bound":
            return advice.on_slow_data(run)
    if causes.is_slow_network:
        return _look_at_link(run, causes)
    if shares.checkpoint >= WORTH_MENTIONING:
        # What it saves is told with the steps: here the verdict is about the network.
        return [replace(advice.save_less_often(run), saves_s=None)]
    if causes.crowded:
        return [advice.on_crowded(run, causes.crowded, saves_s=None)]
    return []


def _look_at_link(run: RunFacts, causes: Causes) -> list[Advice]:
    """Returns where to look for what limits the rate, if the ports announce more than passes or
    one of them is slower than the others."""
    hosts, cap = causes.speed.hosts, causes.cap
    announced = min((h.port_rate for h in hosts if not math.isnan(h.port_rate)), default=math.nan)
    is_named = cap is not None and bool(cap.hosts or cap.hop)
    if not causes.at_most < announced / 2 and not (is_named and math.isnan(announced)):
        return []
    named = list(cap.hosts or cap.hop or ()) if cap is not None else []
    host = named[0 if cap and cap.has_even_sender else -1] if named else hosts[0].host
    interface = next((h.interface for h in hosts if h.host == host), "") or "eth0"
    look = f"cat /sys/class/net/{interface}/speed; tc qdisc show dev {interface}"
    what = f"limits the connection of {listed(named)}"
    if cap is not None and cap.hop and not cap.hosts:
        what = f"limits what passes from {cap.hop[0]} to {cap.hop[1]}"
    elif not named:
        what = "limits the connections of the hosts"
    if causes.found.verdict != "network-bound":
        what += " now and then"
    text = (
        f"Find out what {what} to {bit_rate(causes.at_most)}: this shows the port's speed in "
        "Mbit/s and limits set on the host; if neither is that low, ask who rents it to you."
    )
    return [Advice(text, advice.on_host(run, host, look), _saving_without_cap(run, causes))]


def _saving_without_cap(run: RunFacts, causes: Causes) -> float | None:
    split = causes.found.split
    saved_s = split.step_s - _split_without_cap(causes).step_s
    if not saved_s > 0:
        return None
    waited_s = float(np.nansum(run.step_parts["network_s"][causes.held_rows]))
    return saved_s / split.network_s * waited_s


def _rate_without_cap(causes: Causes) -> float:
    """Returns the highest rate that was seen anywhere, or what the ports announce if that is less,
    in bytes a second: so fast the others are at least."""
    hosts = causes.speed.hosts
    seen = known([rate for host in hosts for rate in (*host.burst_rates.values(), host.carried)])
    announced = known([host.port_rate for host in hosts])
    if causes.cap is None or not causes.cap.is_sure:
        return min(announced, default=math.nan)
    return min([max(seen, default=math.inf), *announced])


def _other_traffic(run: RunFacts, causes: Causes) -> list[Advice]:
    hosts, step_s = causes.speed.hosts, causes.found.run_split.step_s
    if counted_against_predicted(hosts, step_s) != "more than predicted":
        return []
    most = max(hosts, key=lambda host: host.bytes_per_step["sent"])
    text = (
        f"More bytes pass than the gradients need: see which connections of {most.host} carry the "
        "others, and end them."
    )
    return [Advice(text, advice.on_host(run, most.host, "ss --tcp --info --processes"))]


def _less_traffic(run: RunFacts, causes: Causes, modes: SyncModes | None) -> list[Advice]:
    """Returns the ways to send less, the one that saves most first."""
    other = _other_mode(run, causes, modes, modes.chosen) if modes and modes.chosen else None
    ways = [other or _larger_updates(run), *fewer_hosts(run, causes)]
    return sorted(ways, key=lambda advice: -(advice.saves_s or 0.0))


def _other_mode(run: RunFacts, causes: Causes, modes: SyncModes, chosen: Forecast) -> Advice:
    sync = chosen.settings
    what = "Send gradients as bf16"
    if sync.is_local:
        what = f"Let workers average weights once in {sync.window_steps} steps, as {sync.wire}"
    text = (
        f"{what}: a step would take about {seconds(chosen.step_s)} instead of "
        f"{seconds(modes.now_s)}, with {size(chosen.bytes_per_step)} instead of "
        f"{size(modes.now_bytes)} per step and host. {QUALITY_COST[sync.mode]}"
    )
    also = [key for key in modes.settings if not key.startswith("sync.")]
    if also:
        text += f" It does not go with {listed(also)}, which is changed too."
    waited_s = float(np.nansum(run.step_parts["network_s"][causes.held_rows]))
    return Advice(
        text,
        train_command(run, modes.settings),
        saves_s=(1 - chosen.exposed_s / causes.found.split.network_s) * waited_s,
        recipe="" if other_launcher(run) else recipe_lines(modes.settings),
    )


def _larger_updates(run: RunFacts) -> Advice:
    tokens = LARGER_UPDATES * run.config.training.tokens_per_update
    return Advice(
        "Send gradients half as often, with updates of twice as many tokens; they learn a little "
        "less from each token, so watch the validation loss.",
        train_command(run, {"training.tokens_per_update": tokens}),
        saves_s=advice.total_s(run, "network_s") * (1 - 1 / LARGER_UPDATES),
    )


def fewer_hosts(
    run: RunFacts, causes: Causes, least_speed_up: float = CLEARLY_FASTER
) -> list[Advice]:
    """Returns the command for fewer hosts, where the run would be faster with them, or as fast as
    asked for: those without a capped port, or as many as wait least for a network that is too slow
    for all."""
    teams = teams_of(run)
    if teams is None or teams.now.hosts < 2 or causes.found.until_step is not None:
        return []
    hosts, step_s = advice.hosts_of(run), teams.now.split.step_s
    capped = [host for host in (causes.cap.hosts if causes.cap else ()) if host in hosts]
    best = teams.fastest_of_fewer()
    then, left = (best.team, []) if best else (None, [])
    if capped and len(capped) < len(hosts):
        rest = teams._replace(now=teams.now._replace(split=_split_without_cap(causes)))
        others = rest.with_hosts(len(hosts) - len(capped)).team
        if then is None or others.step_s < then.step_s:
            then = projected(step_s, teams.now.hosts, others.step_s, others.hosts)
            left = [host for host in hosts if host not in capped]
    if then is None or then.speed_up < least_speed_up or then.cost_factor > 1:
        return []
    who = f"without {listed(capped)}" if left else f"on {count(then.hosts, 'host')} alone"
    text = (
        f"Train {who}: a step would take about {seconds(then.step_s)} instead of "
        f"{seconds(step_s)}, and each token would cost less."
    )
    steps_s = advice.total_s(run, "step_s")
    if left:  # the others had no such port before
        steps_s = float(run.step_parts["step_s"][causes.held_rows].sum())
    saves_s = (1 - 1 / then.speed_up) * steps_s
    found = advice.on_hosts(run, left or hosts[: then.hosts], text, saves_s)
    return [found] if found else []


def _split_without_cap(causes: Causes) -> StepSplit:
    """Returns the split of a step on links as fast as those that are not capped."""
    split, could = causes.found.split, _rate_without_cap(causes)
    if not could > causes.at_most:
        return split
    then_s = with_faster_link(split, causes.speed.link, could / causes.at_most)
    saved_s = split.step_s - then_s
    return split._replace(step_s=then_s, network_s=split.network_s - saved_s)
