"""The split of a mean step that takes what a test says."""

import math

from dragoman.diagnosis.run.steps import StepSplit


def split(
    compute_s: float = 1.0,
    network_s: float = 0.0,
    straggling_s: float = 0.0,
    data_s: float = 0.0,
    rest_s: float = 0.0,
    late_data_s: float = 0.0,
) -> StepSplit:
    known = [s for s in (network_s, straggling_s) if not math.isnan(s)]
    step_s = compute_s + data_s + rest_s + sum(known)
    return StepSplit(
        step_s,
        compute_s,
        network_s,
        straggling_s,
        data_s,
        checkpoint_s=0.0,
        rest_s=rest_s,
        late_data_s=late_data_s,
        small_message_s=rest_s,
        backward_s=compute_s * 2 / 3,
        busy_s=compute_s,
    )
