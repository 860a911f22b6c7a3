"""What `dragoman config` says first: how long a recipe takes here, and what is in its way. Pure."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.config import PRESETS, Config
from dragoman.console import duration
from dragoman.corpus.sources import SPLITS, local_files
from dragoman.diagnosis.phrasing import count, money
from dragoman.forecast.computing import operations_of
from dragoman.plan.content import Figure, Plan
from dragoman.plan.data import Data
from dragoman.plan.here import Outlook
from dragoman.plan.words import UNKNOWN_COST, end_text, steps_text, with_interval

LONG_HOURS = 24.0
"""A run that takes longer on this machine comes with a warning."""
BUSY_LOAD = 0.75
"""Processes a core, beyond which times are told to be those of a busy machine."""
MOST_FILES = 3
"""Missing files that are named."""


def outlook_rows(config: Config, found: Outlook, recipe: str) -> list[tuple[str, str]]:
    """Returns (name, value in words): time, length and money of the run."""
    rows = []
    if found.plan is None:
        rows.append(("time", f"not known: {found.known_from}"))
    else:
        rows.append(("time", _time(found.plan)))
        rows.append(("a step", f"{with_interval(found.plan.own.step_s)}, from {found.known_from}"))
    rows.append(("epochs", _epochs(config, found, recipe)))
    if found.plan and found.plan.own.cost:
        rows.append(("cost", _cost(config, found.plan, found.plan.own.cost)))
    elif config.cost.budget:
        rows.append(("cost", f"not known, so {UNKNOWN_COST}; set cost.host_per_hour"))
    return rows


def warnings_of(config: Config, found: Outlook, workers: int, recipe: str) -> list[str]:
    """Returns what is in the way of the run, the most important first."""
    return [
        *_missing_files(config, found.data),
        *_idle_workers(config, found.data, workers),
        *_too_many_workers(found, workers),
        *_too_long(config, found, recipe),
        *_busy(found),
        *_over_budget(found.plan),
        *_ignored_vocabulary(config, found.data),
        *([f"{found.note}."] if found.note else []),
    ]


def _time(plan: Plan) -> str:
    hours = plan.own.hours
    if hours is None:
        return "not known: how many steps there are is counted when the data is prepared"
    others_s = 3600 * hours.value - (plan.own.steps or 0) * plan.own.step_s.value
    text = f"about {_interval(hours)}: {steps_text(plan)}{end_text(plan)}"
    if others_s >= max(1.0, 0.01 * 3600 * hours.value):
        text += f", and {duration(others_s)} to start, evaluate and save"
    return text


def _span(hours: float) -> str:
    """2 h 10 min, 1 d 4 h, 293 days, 9 years: as exact as a forecast can be."""
    days = hours / 24
    if days < 100:
        return duration(3600 * hours)
    return f"{days:,.0f} days" if days < 1000 else f"{days / 365.25:,.0f} years"


def _interval(hours: Figure) -> str:
    likely, low, high = (_span(each) for each in (hours.value, hours.low, hours.high))
    return likely if low == high else f"{likely} ({low} to {high})"


def _epochs(config: Config, found: Outlook, recipe: str) -> str:
    per_epoch = found.data.steps_per_epoch
    if per_epoch is None:
        epochs = config.training.epochs
        known = f"{epochs:,}, of which the steps are " if epochs else ""
        return f"{known}known once the data is prepared, with: dragoman prepare {recipe}"
    steps = found.plan.own.steps if found.plan else config.training.steps
    of_epoch = f"{count(per_epoch, 'step')} each, with {found.data.basis}"
    return f"{steps / per_epoch:,.1f} of {of_epoch}" if steps else f"of {of_epoch}"


def _cost(config: Config, plan: Plan, cost: Figure) -> str:
    likely, low, high = (money(each, plan.currency) for each in (cost.value, cost.low, cost.high))
    interval = "" if low == high else f" ({low} to {high})"
    return f"about {likely}{interval}, at {config.cost.host_per_hour:g} an hour"


def _missing_files(config: Config, data: Data) -> list[str]:
    """Prepared data needs its sources no more."""
    if data.is_prepared:
        return []
    missing = [path for path in local_files(config.data, *SPLITS) if not path.exists()]
    if not missing:
        return []
    more = f", and {len(missing) - MOST_FILES:,} more" if len(missing) > MOST_FILES else ""
    are = "are" if len(missing) > 1 else "is"
    return [
        f"{', '.join(map(str, missing[:MOST_FILES]))}{more} {are} not there yet; bring what is "
        "missing, or set data.folder."
    ]


def _idle_workers(config: Config, data: Data, workers: int) -> list[str]:
    if workers <= data.micro_batches or config.training.micro_batch_tokens == "auto":
        return []
    has = "has" if data.is_prepared else "probably has"
    return [
        f"{workers} workers are more than an update {has} micro-batches ({data.micro_batches}); "
        "start fewer workers, or lower training.micro_batch_tokens = "
        f"{config.training.micro_batch_limit}."
    ]


def _too_many_workers(found: Outlook, workers: int) -> list[str]:
    if found.workers >= workers:
        return []
    return [
        f"{workers} workers are more than this machine has room for; time and money are those of "
        f"{found.device}, and training refuses more without --oversubscribe."
    ]


def _too_long(config: Config, found: Outlook, recipe: str) -> list[str]:
    plan = found.plan
    if plan is None or plan.own.hours is None or plan.own.hours.value <= LONG_HOURS:
        return []
    smaller = _smaller_preset(config, found.data, plan.own.hours.value)
    preset = f"take a smaller model ({smaller}), " if smaller else ""
    return [
        f"{_span(plan.own.hours.value)} are long: {preset}lower training.steps, or train "
        "on a GPU or on more machines, of which this forecasts time and money: "
        f'dragoman plan {recipe} --assume "4 nodes, 1gbit, 14 TFLOP/s".'
    ]


def _busy(found: Outlook) -> list[str]:
    if found.plan is None or found.load < BUSY_LOAD:
        return []
    took = (
        "alone, the run would take less time"
        if found.plan.own.step_s.is_measured
        else "beside them, the run takes more time"
    )
    return [f"Other programs compute here, too ({found.load:.1f} processes a core): {took}."]


def _smaller_preset(config: Config, data: Data, hours: float) -> str:
    """Returns the largest preset that stays below a day, else the smallest, in words.

    Empty: there is no smaller one, or layers and widths are set on their own.
    """
    shape = {key: getattr(config.model, key) for key in PRESETS[config.model.preset]}
    if shape != PRESETS[config.model.preset]:
        return ""
    own = _operations(config, data)
    others = []
    for name, sizes in PRESETS.items():
        model = config.model.model_copy(update={"preset": name, **sizes})
        share = _operations(config.model_copy(update={"model": model}), data) / own
        if share < 0.7:  # what saves less is no help
            others.append((share * hours, name))
    if not others:
        return ""
    fitting = [each for each in others if each[0] <= LONG_HOURS]
    took, name = max(fitting) if fitting else min(others)
    return f'model.preset = "{name}": about {_span(took)}'


def _operations(config: Config, data: Data) -> float:
    of_update = operations_of(config, data.vocabulary, data.lengths)
    return of_update.forward + of_update.backward + of_update.update


def _over_budget(plan: Plan | None) -> list[str]:
    if plan is None or not plan.exceeds_budget or plan.own.cost is None:
        return []
    cost, budget = (money(each, plan.currency) for each in (plan.own.cost.value, plan.budget))
    return [f"{cost} is more than cost.budget = {budget}; raise that, or lower training.steps."]


def _ignored_vocabulary(config: Config, data: Data) -> list[str]:
    settings = config.tokenizer
    is_set = "vocabulary" in settings.model_fields_set
    if not settings.model or not is_set or settings.vocabulary == data.vocabulary:
        return []
    return [
        f"tokenizer.vocabulary = {settings.vocabulary} is not used, since tokenizer.model has "
        f"{data.vocabulary:,} pieces ({Path(settings.model).name}); remove one of the two keys."
    ]


def in_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows]
