"""All ways to synchronize, each with its step and its run. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from dragoman.config import Config, SyncSettings, problems_of
from dragoman.forecast.quantity import Quantity
from dragoman.forecast.run import Extra, evaluation_s, extra_of
from dragoman.forecast.step import Model, StepForecast, forecast_step
from dragoman.forecast.sync_modes import (
    LADDER,
    LARGEST_SHARE,
    OPT_IN,
    QUALITY_COST,
    explicit_keys,
    in_a_word,
)
from dragoman.model.size import count_parameters, size_of
from dragoman.plan.content import Figure, Mode
from dragoman.plan.data import Data
from dragoman.plan.setup import CASES, Setup

Group: TypeAlias = Literal["rank", "host"]
ACCUMULATED = SyncSettings(mode="accumulate", accumulate=4)
SHOWN: Sequence[SyncSettings] = (*LADDER[:2], ACCUMULATED, *LADDER[2:], OPT_IN)
"""The mildest first."""
NEARLY = 1.05
"""Of a step: whoever takes no longer than this is as fast, and loses no quality for the rest."""
CLEARLY_FASTER = 0.98
_HARSHNESS = {"fp32": 0, "bf16": 1}
"""How much quality a mode may lose, the others the most."""
EXTRA_WIDTH = 2.0
"""Evaluations and saves may take three times as long as assumed, or a third."""


class Forecasts(NamedTuple):
    """A step in the likely, the fastest and the slowest case, for one update of the recipe."""

    likely: StepForecast
    fast: StepForecast
    slow: StepForecast
    updates: float
    """Of the recipe, in one step of the mode; below 1 where the recipe accumulates more."""

    def quantity(self, part: str, is_measured: bool, basis: str) -> Quantity:
        value, low, high = (getattr(each, part) / self.updates for each in self[:3])
        return Quantity(value, min(low, value), max(high, value), is_measured, basis)

    @property
    def step_s(self) -> float:
        """Returns the seconds of one update of the recipe."""
        return self.likely.step_s / self.updates

    @property
    def communication_s(self) -> float:
        return self.likely.communication_s / self.updates

    @property
    def compute_s(self) -> float:
        return self.likely.compute_s / self.updates


def forecast_mode(config: Config, settings: SyncSettings, setup: Setup, data: Data) -> Forecasts:
    """Forecasts a step in all three cases.

    `accumulate` computes several updates of a recipe that has it not yet, and sends once for all;
    in one that has it, all other modes send more often.
    """
    updates = (settings.accumulate or 1) / (config.sync.accumulate or 1)
    computing = setup.computing.times(updates)
    ranks = setup.ranks
    found = []
    for case in CASES:
        work = computing.work(ranks, case)
        passes = round(work.backward_s / work.last_backward_s) if work.last_backward_s else 1
        model = Model(
            config.model,
            data.vocabulary,
            count_parameters(config.model, data.vocabulary),
            is_sharded=config.training.sharding == "full",
            passes=passes,
        )
        found.append(
            forecast_step(settings, model, work, setup.network(case), setup.processor_in(case))
        )
    likely, fast, slow = found
    return Forecasts(likely, fast, slow, updates)


def refusal_of(config: Config, settings: SyncSettings) -> str:
    """Returns why a recipe does not go with these settings; empty: it does."""
    sync = settings.model_dump()
    if config.sync.mode == "accumulate" and settings.mode == "accumulate":
        return ""
    try:
        type(config).model_validate({**config.model_dump(), "sync": sync})
    except ValidationError as error:
        return problems_of(error)
    return ""


def modes_of(
    config: Config, setup: Setup, data: Data, steps: int | None
) -> list[tuple[SyncSettings, Mode]]:
    """Returns the recipe's own mode first; where that is auto, the one that it would choose.

    A single worker has nobody to synchronize with, and no other mode.
    """
    groups: Sequence[Group] = [config.sync.group]
    if setup.hosts > 1 and setup.ranks_on_host > 1:
        groups = ["host", "rank"]  # the milder first: fewer take steps of their own
    advised, every = _in_groups(LADDER, groups), _in_groups(SHOWN, groups)
    shown = every if setup.ranks > 1 else []
    by_auto = _in_groups(LADDER, [config.sync.group])
    forecasts = {
        settings: forecast_mode(config, settings, setup, data) for settings in {*every, *by_auto}
    }
    refused = {settings: refusal_of(config, settings) for settings in forecasts}
    if config.sync.mode == "auto":
        own = mildest_of([each for each in by_auto if not refused[each]], forecasts)
    else:
        own = config.sync
    if own not in forecasts:
        forecasts[own] = forecast_mode(config, own, setup, data)
    best = _best(own, [each for each in advised if not refused[each]], forecasts)
    others = [each for each in shown if in_a_word(each) != in_a_word(own)]
    found = []
    for settings in (own, *others):
        mode = _mode(config, settings, forecasts[settings], setup, data, steps)
        known = {
            "is_own": settings is own,
            "is_recommended": in_a_word(settings) == in_a_word(best),
            "refused": "" if settings is own else refused[settings],
        }
        found.append((settings, mode.model_copy(update=known)))
    return found


def is_enough(forecasts: Forecasts) -> bool:
    return forecasts.communication_s < LARGEST_SHARE * forecasts.compute_s


def mildest_of(
    allowed: Sequence[SyncSettings], forecasts: Mapping[SyncSettings, Forecasts]
) -> SyncSettings:
    """Returns the mildest mode that is enough; where none is, the mildest of the fastest."""
    fastest_s = min(forecasts[each].step_s for each in allowed)
    enough = [each for each in allowed if is_enough(forecasts[each])]
    nearly = [each for each in allowed if forecasts[each].step_s <= NEARLY * fastest_s]
    return (enough or nearly)[0]


def _best(
    own: SyncSettings,
    allowed: Sequence[SyncSettings],
    forecasts: Mapping[SyncSettings, Forecasts],
) -> SyncSettings:
    """Returns what to recommend: the recipe's own mode, unless another is clearly faster, or loses
    less quality and is as fast."""
    own_s = forecasts[own].step_s
    for each in allowed:
        is_milder = _HARSHNESS.get(each.mode, 2) < _HARSHNESS.get(own.mode, 2)
        if is_milder and forecasts[each].step_s <= NEARLY * own_s:
            return each
    mildest = mildest_of(allowed, forecasts)
    is_faster = forecasts[mildest].step_s < CLEARLY_FASTER * own_s
    return mildest if is_faster and not is_enough(forecasts[own]) else own


def _in_groups(modes: Sequence[SyncSettings], groups: Sequence[Group]) -> list[SyncSettings]:
    """Returns the modes in which workers take steps of their own once for each kind of group."""
    return [
        settings.model_copy(update={"group": group}) if settings.is_local else settings
        for settings in modes
        for group in (groups if settings.is_local else groups[:1])
    ]


def _mode(
    config: Config,
    settings: SyncSettings,
    found: Forecasts,
    setup: Setup,
    data: Data,
    steps: int | None,
) -> Mode:
    computed = setup.computing.factor
    is_alone = setup.ranks == 1
    sends = is_alone or setup.hop_rate.is_measured
    is_measured = computed.is_measured and sends
    basis = computed.basis if is_alone else f"{computed.basis}; {setup.hop_rate.basis}"
    step = found.quantity("step_s", is_measured, basis)
    message = found.quantity("message_s", sends, "")
    exposed = found.quantity("exposed_s", is_measured, basis)
    run = run_of(config, setup, data, step, steps)
    return Mode(
        name=in_a_word(settings),
        settings=explicit_keys(settings),
        is_own=False,
        is_recommended=False,
        refused="",
        quality=QUALITY_COST[settings.mode],
        bytes_per_step=found.likely.bytes_per_step / found.updates,
        compute_s=Figure.of(found.quantity("compute_s", computed.is_measured, computed.basis)),
        sending_s=Figure.of(found.quantity("sending_s", sends, setup.hop_rate.basis)),
        exposed_s=Figure.of(
            exposed._replace(
                value=exposed.value + message.value,
                low=exposed.low + message.low,
                high=exposed.high + message.high,
            )
        ),
        slowed_s=Figure.of(found.quantity("slowed_s", False, setup.contention.basis)),
        step_s=Figure.of(step),
        hours=Figure.of(run.hours) if run else None,
        cost=Figure.of(run.cost) if run and run.cost else None,
        steps=run.steps if run else None,
    )


class Run(NamedTuple):
    hours: Quantity
    cost: Quantity | None
    extra: Extra
    steps: int
    """That it comes to, which `training.hours` may make fewer than were asked for."""


def run_of(
    config: Config, setup: Setup, data: Data, step_s: Quantity, steps: int | None
) -> Run | None:
    """Returns hours and money of so many updates; None: their number is not known."""
    limit = config.training.hours
    if steps is None and limit is None:
        return None
    is_open = steps is None
    if steps is None:
        assert limit is not None
        steps = max(1, round(3600 * limit / step_s.value))
    extra = extras(config, setup, data, step_s.value, steps)
    other_s = extra.seconds
    low, high = other_s / (1 + EXTRA_WIDTH), other_s * (1 + EXTRA_WIDTH)
    hours = Quantity(
        (steps * step_s.value + other_s) / 3600,
        (steps * step_s.low + low) / 3600,
        (steps * step_s.high + high) / 3600,
        False,  # evaluations and saves are assumed
        f"{steps:,} steps; evaluations and saves assumed",
    )
    if limit is not None and (is_open or hours.high > limit):
        done = max(1, round(steps * min(1.0, limit / hours.value)))
        hours = hours._replace(
            value=limit if is_open else min(hours.value, limit),
            low=limit if is_open else min(hours.low, limit),
            high=limit,
            basis="training.hours" if is_open or done < steps else hours.basis,
        )
        steps = done
    price = setup.price_per_hour
    if price is None:
        return Run(hours, None, extra, steps)
    cost = hours.map(lambda number: price * number)
    return Run(hours, cost._replace(basis=f"{hours.basis}; {price:g} an hour"), extra, steps)


def extras(config: Config, setup: Setup, data: Data, step_s: float, steps: int) -> Extra:
    """Returns evaluations and saves; their speed is that of training, as forecast."""
    ranks, work = setup.ranks, setup.work("likely")
    size = size_of(config.model, data.vocabulary, config.optimizer, config.sync)
    operations = size.flops_per_token * config.training.tokens_per_update * config.training.passes
    reached = operations / ranks / max(1e-9, work.forward_s + work.backward_s)
    evaluating_s = evaluation_s(
        config, data.vocabulary, data.validation_pairs, data.lengths, ranks, reached
    )
    return extra_of(config, size, steps, step_s, evaluating_s, setup.processor_in("likely"))
