"""Turns the events of timed runs into figures, over whole windows. Pure.

A window is the steps from one synchronization to the next, so part of one would have too few bytes
or too many. Where every update is sent, each step is a window.
"""

from typing import NamedTuple

from scaling_bench.figures import Figures, Ranks, exposed_communication_s

WARM_UP_STEPS = 3
"""At the start of a run, not counted, and then as many as are missing to a whole window."""


class Span(NamedTuple):
    """Steps that are counted: those after `begin`, up to and including `end`."""

    begin: int
    end: int


def planned_span(window: int, steps: int) -> Span:
    """Returns the fewest whole windows with so many counted steps, after those of the warm-up."""
    begin = _rounded_up(WARM_UP_STEPS, window)
    return Span(begin, begin + _rounded_up(steps, window))


def whole_windows(window: int, planned: Span) -> Span:
    """Returns the whole windows within what was planned, for a run that has chosen its own."""
    span = Span(_rounded_up(planned.begin, window), planned.end // window * window)
    if span.end <= span.begin:
        raise ValueError(
            f"{planned.end} steps, of which {planned.begin} are not counted, hold no whole window "
            f"of {window}"
        )
    return span


def steps_to_train(planned: Span) -> int:
    """Returns the steps of a run: one more than is counted.

    With the last one all weights are sent at once, which no window of a longer run has.
    """
    return planned.end + 1


def timed_figures(ranks: Ranks, span: Span, updates_per_step: int) -> Figures:
    """Returns time, exposed communication and bytes of the counted steps.

    An update is one of the recipe, of which a step has several where they are accumulated: so that
    all variants are shown for the same tokens.
    """
    lead = ranks[0]
    if len(lead) < span.end:
        raise ValueError(f"{len(lead)} steps instead of {span.end}")
    counted = [[step.done for step in of_rank[span.begin : span.end]] for of_rank in ranks.values()]
    seconds = lead[span.end - 1].at - lead[span.begin - 1].at
    tokens = sum(step.tokens for step in counted[0])
    updates = updates_per_step * (span.end - span.begin)
    exposed_s = sum(map(exposed_communication_s, zip(*counted, strict=True)))
    figures = {
        "token_s": seconds / tokens,
        "update_s": seconds / updates,
        "exposed_s": exposed_s / updates,
        "exposed_share": exposed_s / seconds,
        "updates": updates,
    }
    # Counted on one rank of each host.
    traffic = [step.traffic_bytes for of_rank in counted for step in of_rank if step.traffic_bytes]
    sent, predicted = (sum(one[way] for one in traffic) for way in ("sent", "predicted"))
    if predicted:
        hosts = len(traffic) / len(counted[0])
        figures |= {
            "sent_bytes": sent / hosts / updates,
            "formula_bytes": predicted / hosts / updates,
            "sent_over_formula": sent / predicted,
        }
    return figures


def _rounded_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
