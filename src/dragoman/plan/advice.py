"""What to change, and what another cluster would buy. Pure."""

from collections.abc import Sequence

from dragoman.config import Config, SyncSettings
from dragoman.console import duration
from dragoman.diagnosis.phrasing import bit_rate, count, money, percent, seconds
from dragoman.forecast.sync_modes import LARGEST_SHARE
from dragoman.plan.content import Gain, Mode, NodesPoint, Recommendation
from dragoman.plan.data import Data
from dragoman.plan.modes import CLEARLY_FASTER, Run, forecast_mode, run_of
from dragoman.plan.setup import Setup

FASTER_LINK = 10.0
WASTEFUL = 0.5
"""Efficiency below which more than half of what is paid for waits."""


def gains_of(
    config: Config,
    setup: Setup,
    data: Data,
    steps: int | None,
    settings: SyncSettings,
    own: Mode,
) -> list[Gain]:
    """Returns what a faster link, another host and one host fewer would change."""
    worlds: list[tuple[str, Setup]] = []
    if setup.hosts > 1:
        faster = setup.with_rate(FASTER_LINK * setup.hop_rate.value / setup.link_efficiency)
        rates = f"{bit_rate(setup.hop_rate.value)} to {bit_rate(faster.hop_rate.value)}"
        worlds.append((f"a link that is ten times as fast ({rates} of payload)", faster))
    more = setup.with_hosts(setup.hosts + 1)
    worlds.append((f"another host ({more.hosts})", more))
    if setup.hosts > 1:
        fewer = setup.with_hosts(setup.hosts - 1)
        worlds.append((f"one host fewer ({fewer.hosts})", fewer))
    return [_gain(what, there, config, data, steps, settings, own) for what, there in worlds]


def _gain(
    what: str,
    there: Setup,
    config: Config,
    data: Data,
    steps: int | None,
    settings: SyncSettings,
    own: Mode,
) -> Gain:
    step = forecast_mode(config, settings, there, data).quantity("step_s", False, what)
    run = run_of(config, there, data, step, steps)
    if not run or not own.hours:
        change = step.value / own.step_s.value - 1
        word = "longer" if change > 0 else "shorter"
        return Gain(
            what=what,
            saved_hours=None,
            saved_cost=None,
            sentence=f"{what}: a step of {seconds(step.value)}, {percent(abs(change))} {word}",
        )
    if own.steps and run.steps != own.steps:
        return _other_steps(what, run, own, config)
    saved_hours = own.hours.value - run.hours.value
    saved_cost = own.cost.value - run.cost.value if own.cost and run.cost else None
    sentence = f"{what}: {_less(saved_hours)} ({duration(3600 * run.hours.value)})"
    if saved_cost:
        sentence += f", {_paid(saved_cost, config)}"
    return Gain(what=what, saved_hours=saved_hours, saved_cost=saved_cost, sentence=sentence)


def _other_steps(what: str, run: Run, own: Mode, config: Config) -> Gain:
    """Returns what changes where the clock ends the run: how far it comes until then."""
    assert own.hours
    assert own.steps
    saved_cost = own.cost.value - run.cost.value if own.cost and run.cost else None
    sentence = (
        f"{what}: {run.steps:,} steps in {duration(3600 * run.hours.value)} instead of "
        f"{own.steps:,} in {duration(3600 * own.hours.value)}"
    )
    if saved_cost:
        sentence += f", {_paid(saved_cost, config)}"
    return Gain(
        what=what,
        saved_hours=own.hours.value - run.hours.value,
        saved_cost=saved_cost,
        sentence=sentence,
    )


def _paid(saved_cost: float, config: Config) -> str:
    paid = money(abs(saved_cost), config.cost.currency)
    return f"{paid} {'less' if saved_cost >= 0 else 'more'}"


def _less(hours: float) -> str:
    return f"{duration(3600 * abs(hours))} {'less' if hours >= 0 else 'more'}"


def recommendation_of(
    config: Config, setup: Setup, own: Mode, best: Mode, nodes: Sequence[NodesPoint]
) -> Recommendation:
    """Returns the mildest mode that is enough, with its reason; the recipe's own if that is."""
    if setup.ranks == 1:
        return Recommendation(
            mode=own.name,
            sentence="Train as the recipe says.",
            reason="One worker has nothing to send.",
            recipe="",
        )
    if fewer := enough_hosts(nodes, setup.hosts, best):
        return _on_fewer(fewer, own, best, setup.hosts)
    waits = own.exposed_s.value + own.slowed_s.value
    share = waits / own.compute_s.value
    wasted = f"{_too_few(setup)}{_fewer_hosts(nodes, setup.hosts)}"
    if best is own or best.name == own.name:
        if share < LARGEST_SHARE:
            reason = (
                f"With {own.name}, a step waits {seconds(waits)} for the network beside "
                f"{seconds(own.compute_s.value)} of computing, less than a quarter."
            )
            sentence = "Keep the recipe's way to synchronize."
        else:
            reason = (
                f"A step waits {seconds(waits)} for the network beside "
                f"{seconds(own.compute_s.value)} of computing, and no milder way is clearly faster."
            )
            sentence = "Keep the recipe's way to synchronize; the network holds it back."
        return Recommendation(
            mode=own.name, sentence=sentence, reason=f"{reason}{wasted}", recipe=""
        )
    if best.step_s.value > CLEARLY_FASTER * own.step_s.value:
        reason = (
            f"With {own.name}, a step takes {seconds(own.step_s.value)}, and with {best.name} "
            f"{seconds(best.step_s.value)}: on this network the recipe's way buys next to nothing. "
            f"{own.quality}"
        )
        return _changed(best, f"{reason.strip()}{wasted}")
    faster = own.step_s.value / best.step_s.value
    best_waits = best.exposed_s.value + best.slowed_s.value
    is_enough = best_waits < LARGEST_SHARE * best.compute_s.value
    what = "the mildest way that waits for less than a quarter of computing"
    reason = (
        f"With {own.name}, a step waits {seconds(waits)} for the network beside "
        f"{seconds(own.compute_s.value)} of computing. {best.name} is "
        f"{what if is_enough else 'as fast as any that is advised'}: a step of "
        f"{seconds(best.step_s.value)} instead of {seconds(own.step_s.value)}, {faster:.1f} times "
        f"as fast. {best.quality}"
    )
    return _changed(best, f"{reason.strip()}{wasted}")


def enough_hosts(nodes: Sequence[NodesPoint], hosts: int, best: Mode) -> NodesPoint | None:
    """Returns the fewest hosts that are as fast in the recipe's own mode as all are in the best."""
    fewer = (point for point in nodes if point.nodes < hosts)
    return next((point for point in fewer if point.step_s.value <= best.step_s.value), None)


def _on_fewer(fewer: NodesPoint, own: Mode, best: Mode, hosts: int) -> Recommendation:
    steps = {own.name: own.step_s.value, best.name: best.step_s.value}
    on_all = " and ".join(f"{seconds(step_s)} with {name}" for name, step_s in steps.items())
    return Recommendation(
        mode=own.name,
        sentence=f"Train on {count(fewer.nodes, 'host')} instead of {hosts}.",
        reason=f"There a step takes {seconds(fewer.step_s.value)} with {own.name}. On {hosts} it "
        f"takes {on_all}: the network costs more time than the other hosts save.",
        recipe="",
    )


def _changed(best: Mode, reason: str) -> Recommendation:
    return Recommendation(
        mode=best.name,
        sentence=f"Set {', '.join(f'sync.{line}' for line in _toml_lines(best))}.",
        reason=reason,
        recipe="\n".join(["[sync]", *_toml_lines(best)]),
    )


def _toml_lines(mode: Mode) -> list[str]:
    return [
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
        for key, value in mode.settings.items()
    ]


def _too_few(setup: Setup) -> str:
    """Returns what a run would be refused for, and what to do."""
    passes = setup.computing.micro_batches
    if setup.ranks <= passes:
        return ""
    return (
        f" An update has {passes} micro-batch{'' if passes == 1 else 'es'}, too few for "
        f"{setup.ranks} workers: lower training.micro_batch_tokens, which this forecast takes for "
        "done."
    )


def _fewer_hosts(nodes: Sequence[NodesPoint], hosts: int) -> str:
    """Returns a sentence where fewer hosts would be as fast in the recipe's own mode."""
    now = next(point for point in nodes if point.nodes == hosts)
    quicker = [
        point for point in nodes if point.nodes < hosts and point.tokens_per_s >= now.tokens_per_s
    ]
    if quicker:
        least = quicker[0]
        return (
            f" In the recipe's own way {count(least.nodes, 'host')} would be at least as fast as "
            f"{hosts}: "
            f"{least.tokens_per_s:,.0f} target tokens a second instead of {now.tokens_per_s:,.0f}."
        )
    if hosts > 1 and now.efficiency < WASTEFUL:
        return f" {hosts} hosts reach {percent(now.efficiency)} of what one alone does, each."
    return ""
