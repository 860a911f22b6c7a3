import re

import numpy as np
import pytest

from dragoman.diagnosis.speed.online import MOST_STEPS, LiveDiagnosis
from dragoman.telemetry.events import StepDone

BASE_BYTES = 4 * 60_880_896.0
TWO = ["node-a", "node-b"]
FOUR = [*TWO, "node-c", "node-d"]


def done(
    step: int,
    network_s: float = 0.02,
    waited_s: float | None = None,
    data_s: float = 0.002,
    compute_s: float = 0.9,
    rest_s: float = 0.005,
) -> StepDone:
    """Of rank 0, which waits as long as the network takes, or longer."""
    waited_s = network_s if waited_s is None else waited_s
    parts = {
        "data": data_s,
        "forward": compute_s / 3,
        "backward": compute_s * 2 / 3,
        "communication": waited_s,
        "rest": rest_s,
    }
    return StepDone(step, 0.0, 3.0, 25_000, 1e-3, 1.0, True, sum(parts.values()), parts)


def lines(live: LiveDiagnosis, network_s, **more) -> list[tuple[int, str]]:
    """What is said after which step; `network_s` of each step, from the first on."""
    found = []
    for step, seconds in enumerate(network_s, start=1):
        said = live.after(done(step, seconds, **more), [seconds, seconds])
        if said:
            found.append((step, said))
    return found


def noisy(*levels: tuple[int, float]) -> list[float]:
    chance = np.random.default_rng(1)
    return [
        level * float(np.exp(chance.normal(0, 0.1)))
        for count, level in levels
        for _ in range(count)
    ]


def test_a_run_that_computes_says_nothing():
    assert lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((500, 0.02))) == []


def test_a_link_that_slows_down_is_told_once_with_the_step_and_what_would_help():
    said = lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((399, 0.02), (400, 2.2)))

    assert len(said) == 1
    at, line = said[0]
    assert re.fullmatch(
        r"network-bound since step 400: (69|7[0-2]) % of the step; "
        r"bf16 on the wire would save about 3\d %",
        line,
    )
    assert at < 440


def test_a_slow_link_from_the_beginning_is_told_since_the_first_step_that_counts():
    said = lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((60, 30.0)))

    assert len(said) == 1
    assert said[0][1].startswith("network-bound since step 2: 97 % of the step")
    assert said[0][0] <= 35


def test_a_hiccup_says_nothing():
    assert lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((200, 0.02), (8, 3.0), (200, 0.02))) == []


def test_what_is_mended_is_told_too():
    said = lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((100, 2.0), (200, 0.02)))

    assert [line.split(":")[0] for _, line in said] == [
        "network-bound since step 2",
        "compute-bound since step 101",
    ]


def test_a_share_at_the_limit_does_not_flicker():
    # Between a fifth of the step, where the verdict begins, and a sixth, where it ends.
    said = lines(LiveDiagnosis(TWO, BASE_BYTES), noisy((100, 0.30), *[(30, 0.17), (30, 0.26)] * 10))

    assert len(said) == 1


def straggling(hosts: list[str], waits_of) -> list[str]:
    """What is said over 100 steps; `waits_of` the number of a step: each rank's."""
    live = LiveDiagnosis(hosts, BASE_BYTES)
    waits = [(step, waits_of(step)) for step in range(1, 101)]
    said = [live.after(done(step, waited_s=waits_s[0]), waits_s) for step, waits_s in waits]
    return [line for line in said if line]


def test_the_host_that_all_wait_for_is_named():
    assert straggling(FOUR, lambda _: [0.5, 0.51, 0.02, 0.49]) == [
        "straggler since step 2: 35 % of the step waits for node-c"
    ]


def test_a_straggler_may_be_the_host_of_rank_0_which_itself_hardly_waits():
    (line,) = straggling(TWO, lambda _: [0.02, 0.5])

    assert line.startswith("straggler since step 2: ")
    assert line.endswith("waits for node-a")


def test_of_several_ranks_on_a_host_the_late_one_is_named():
    (line,) = straggling(["node-a", "node-a", "node-b", "node-b"], lambda _: [0.5, 0.5, 0.5, 0.02])

    assert line.endswith("waits for rank 3 on node-b")


def test_ranks_of_one_host_go_by_their_numbers():
    (line,) = straggling(["node-a", "node-a"], lambda _: [0.5, 0.02])

    assert line.endswith("waits for rank 1")


def test_stragglers_in_turn_are_not_blamed_on_one():
    def waits(step):
        return [0.02 if step // 3 % 4 == rank else 0.5 for rank in range(4)]

    (line,) = straggling(FOUR, waits)

    assert line.endswith("waits for now one rank and now another")


def test_waiting_for_data_is_told():
    live = LiveDiagnosis(TWO[:1], BASE_BYTES)
    said = [live.after(done(step, 0.0, data_s=0.6)) for step in range(1, 101)]

    assert [line for line in said if line] == [
        "input-bound since step 2: 40 % of the step waits for data"
    ]


def test_without_the_waits_of_all_ranks_nothing_is_said_of_the_network():
    live = LiveDiagnosis(TWO, BASE_BYTES)

    assert not any(live.after(done(step, 5.0)) for step in range(1, 101))


def test_many_small_messages_that_take_long_are_latency():
    live = LiveDiagnosis(FOUR, 4e6)
    said = [live.after(done(s, 0.3, compute_s=0.3, rest_s=0.14), [0.3] * 4) for s in range(1, 201)]

    assert next(line for line in said if line).startswith("latency-bound since step 2: 40 %")


@pytest.mark.parametrize("step_s", [1e-4, 100.0])
def test_fast_steps_and_slow_ones_are_judged_by_enough_of_both(step_s):
    live = LiveDiagnosis(TWO, BASE_BYTES)
    at = None
    spent_s = 0.0
    for step in range(1, 1_000_000):
        event = done(step, step_s, compute_s=step_s, data_s=0.0, rest_s=0.0)
        spent_s += event.step_s
        if live.after(event, [step_s, step_s]):
            at = step
            break
    assert at is not None
    assert at >= 21
    assert spent_s >= 30.0


def test_memory_is_bounded():
    live = LiveDiagnosis(TWO, BASE_BYTES)
    for step in range(1, 5 * MOST_STEPS):
        live.after(done(step, 1e-5, compute_s=1e-4), [1e-5, 1e-5])

    assert len(live._taken) <= MOST_STEPS
    assert len(live._window) <= MOST_STEPS + 1


def test_a_step_that_hung_changes_nothing():
    live = LiveDiagnosis(TWO, BASE_BYTES)
    said = [
        live.after(done(step, waited_s), [waited_s, waited_s])
        for step in range(1, 200)
        for waited_s in [4000.0 if step == 100 else 0.02]
    ]

    assert not any(said)
