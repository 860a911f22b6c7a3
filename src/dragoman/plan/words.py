"""How a plan's figures become words. Pure."""

from dragoman.console import duration
from dragoman.diagnosis.phrasing import bit_rate, money, seconds, size
from dragoman.plan.content import Figure, Input, Memory, Mode, Plan

UNKNOWN_COST = "not held against cost.budget, since no host has a price"


def summary_lines(plan: Plan) -> list[str]:
    """Returns the plan in three lines: the step, the run, and what to do."""
    own = plan.own
    known = "measured" if plan.is_measured else "partly assumed"
    waits = own.exposed_s.value + own.slowed_s.value
    step = (
        f"A step will take {with_interval(own.step_s)}: {seconds(own.compute_s.value)} of "
        f"computing and {seconds(waits)} of waiting for {size(own.bytes_per_step)} a host "
        f"({own.name}; {known})."
    )
    if own.hours is None:
        run = "How long the run takes is not known: the recipe sets neither steps nor hours."
    else:
        spread = f"{duration(3600 * own.hours.low)} to {duration(3600 * own.hours.high)}"
        steps = f"{steps_text(plan)}{end_text(plan)}"
        paid = f", {cost_text(own.cost, plan.currency)}" if own.cost else ""
        over = f", above cost.budget = {plan.budget:g}" if plan.exceeds_budget else ""
        if plan.budget and not own.cost:
            over = f", {UNKNOWN_COST}"
        run = f"The run ({steps}): {duration(3600 * own.hours.value)} ({spread}){paid}{over}."
    return [step, run, f"{plan.recommendation.sentence} {plan.recommendation.reason}"]


def steps_text(plan: Plan) -> str:
    """300,000 steps; about 10,800 of 300,000 steps, where the clock ends the run."""
    if plan.is_ended_by_the_clock and plan.own.steps:
        of_all = f" of {plan.steps:,}" if plan.steps else ""
        return f"about {plan.own.steps:,}{of_all} steps"
    return f"{plan.steps:,} steps" if plan.steps else "steps not known"


def end_text(plan: Plan) -> str:
    return " until training.hours end it" if plan.is_ended_by_the_clock else ""


def memory_text(memory: Memory) -> str:
    text = (
        f"{size(memory.state_bytes)} for weights, gradients and optimizer, and "
        f"{size(memory.activation_bytes)} for a micro-batch ({memory.basis})."
    )
    if memory.device_bytes is None:
        return text
    text += f" A device has {size(memory.device_bytes)}; "
    largest = memory.largest_micro_batch_tokens
    if not largest:
        return f"{text}the model does not fit."
    if memory.is_enough or memory.micro_batch_tokens is None:
        return f"{text}micro-batches of up to {largest:,} tokens fit."
    return (
        f"{text}the recipe's micro-batches of {memory.micro_batch_tokens:,} tokens do not fit. Set "
        f"training.micro_batch_tokens to {largest:,} or less."
    )


def with_interval(figure: Figure) -> str:
    """3.1 s (2.8 to 3.5 s): the unit of the lower end is left out where the upper has it too."""
    low, high = seconds(figure.low), seconds(figure.high)
    number, _, unit = low.partition(" ")
    low = number if high.endswith(f" {unit}") and unit.count(" ") == high.count(" ") - 1 else low
    return f"{seconds(figure.value)} ({low} to {high})"


def cost_text(figure: Figure | None, currency: str) -> str:
    if figure is None:
        return "-"
    return (
        f"{money(figure.value, currency)} ({money(figure.low, currency)} to "
        f"{money(figure.high, currency)})"
    )


def hours_text(figure: Figure | None) -> str:
    return duration(3600 * figure.value) if figure else "-"


def known_from(figure: Figure) -> str:
    return "measured" if figure.is_measured else "assumed"


def input_text(given: Input) -> str:
    """Returns the figure in the unit in which it is sold or felt."""
    figure = given.figure
    if given.unit == "bytes/s":
        return f"{bit_rate(figure.value)} ({bit_rate(figure.low)} to {bit_rate(figure.high)})"
    if given.unit == "bytes":
        return size(figure.value)
    if given.unit == "s/byte":
        return f"{1e9 * figure.value:.2g} s/GB ({1e9 * figure.low:.2g} to {1e9 * figure.high:.2g})"
    return with_interval(figure)


def short_money(value: float | None) -> str:
    """587, 72.8 M: without its currency, for a column."""
    if value is None:
        return "-"
    if value < 999_500:
        return f"{value:,.0f}"
    return f"{value / 1e6:,.3g} M" if value < 999.5e6 else f"{value / 1e9:,.3g} G"


def short_name(name: str) -> str:
    """local 8 4bit: the keys are known from their order."""
    for key in ("accumulate=", "local_steps=", "wire=", "group="):
        name = name.replace(key, "")
    return name


def mode_remark(mode: Mode) -> str:
    """own, recommended, refused or why it is opt-in; empty: nothing to say."""
    if mode.refused:
        return "refused"
    marks = [
        *(["yours"] if mode.is_own else []),
        *(["recommended"] if mode.is_recommended else []),
    ]
    return ", ".join(marks)


def modes_of_links(plan: Plan, most: int) -> list[str]:
    """Returns the own and the recommended mode, then those that differ most from them."""
    allowed = [mode.name for mode in plan.modes if not mode.refused]
    wanted = [plan.own.name, plan.recommendation.mode, *allowed[1:2], *reversed(allowed[:-1])]
    return [name for name in dict.fromkeys(wanted) if name in allowed][:most]
