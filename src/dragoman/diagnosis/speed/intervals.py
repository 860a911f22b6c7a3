"""How often to do what interrupts the steps, such as saving and evaluating. Pure."""

import math


def interval_for(each_s: float, step_s: float, share: float) -> int:
    """Returns the steps between two interruptions of `each_s` with which they take this share of
    the steps' time, rounded up to two digits."""
    if not step_s:
        return 1
    steps = each_s / (share * step_s)
    unit = 10.0 ** max(0, math.floor(math.log10(max(1.0, steps))) - 1)
    return max(1, round(math.ceil(steps / unit) * unit))
