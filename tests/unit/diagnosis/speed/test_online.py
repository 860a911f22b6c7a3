import itertools
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from unit.report import fake_run

from dragoman.config import parse_config
from dragoman.diagnosis.speed.online import MOST_STEPS, LiveDiagnosis
from dragoman.telemetry.events import StepDone
from dragoman.training.observer import RankParts

CONFIG = parse_config(fake_run.CONFIG, "config.toml")
BASE_BYTES = 4 * 60_880_896.0
TWO = ["node-a", "node-b"]
FOUR = [*TWO, "node-c", "node-d"]


def parts(
    communication_s: float | None = 0.02,
    data_s: float = 0.002,
    compute_s: float = 0.9,
    rest_s: float = 0.005,
) -> RankParts:
    return RankParts(
        data_s=data_s,
        forward_s=compute_s / 3,
        backward_s=compute_s * 2 / 3,
        communication_s=communication_s,
        agreement_s=0.0,
        checkpoint_s=0.0,
        optimizer_s=0.0,
        rest_s=rest_s,
        ready_s=data_s + compute_s,
    )


def after(live: LiveDiagnosis, step: int, by_rank: Sequence[RankParts]) -> str | None:
    """What is logged after a step; rank 0's clock is as long as its parts."""
    step_s = sum(part_s or 0.0 for part_s in by_rank[0][:-1])
    return live.after(StepDone(step, 0.0, 3.0, 25_000, 1e-3, 1.0, True, step_s), by_rank)


def lines(live: LiveDiagnosis, network_s: Iterable[float], **more: float) -> list[tuple[int, str]]:
    """What is logged after which step; `network_s` of each step, from the first on."""
    found = []
    for step, seconds in enumerate(network_s, start=1):
        logged = after(live, step, [parts(seconds, **more)] * 2)
        if logged:
            found.append((step, logged))
    return found


def noisy(*levels: tuple[int, float]) -> list[float]:
    chance = np.random.default_rng(1)
    return [
        level * float(np.exp(chance.normal(0, 0.1)))
        for count, level in levels
        for _ in range(count)
    ]


def test_a_run_that_computes_logs_nothing():
    assert lines(LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((500, 0.02))) == []


def test_a_link_that_slows_down_is_logged_once_with_the_step_and_what_would_help():
    logged = lines(LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((399, 0.02), (400, 2.2)))

    assert len(logged) == 1
    at, line = logged[0]
    assert re.fullmatch(
        r"network-bound since step 400: (69|7[0-2]) % of the step; "
        r"a new run with sync.mode = \"local\", .*sync.wire = \"4bit\" would save about [67]\d %",
        line,
    )
    assert at < 440


@pytest.mark.parametrize(
    ("setting", "hosts", "words"),
    [
        ("sync.mode=auto", TWO, "of the step"),  # which looks for itself
        ("optimizer.average_decay=0.9", TWO, "optimizer.average_decay = 0.0 would save"),
        ("training.sharding=full", TWO, "updates twice as large would save"),
        ("sync.mode=fp32", TWO[:1] * 2, "updates twice as large would save"),
    ],
)
def test_only_what_the_recipe_allows_and_the_report_advises_is_proposed(setting, hosts, words):
    config = parse_config(fake_run.CONFIG, "config.toml", [setting])
    ((_, line),) = lines(LiveDiagnosis(config, hosts, BASE_BYTES), noisy((80, 2.2)))
    assert line.partition(words)[1]
    assert ("save" in line) == ("save" in words)


def test_a_slow_link_from_the_beginning_is_logged_since_the_first_step_that_counts():
    logged = lines(LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((60, 30.0)))

    assert len(logged) == 1
    assert logged[0][1].startswith("network-bound since step 2: 97 % of the step")
    assert logged[0][0] <= 35


def test_a_hiccup_logs_nothing():
    assert (
        lines(LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((200, 0.02), (8, 3.0), (200, 0.02)))
        == []
    )


def test_what_is_mended_is_logged_too():
    logged = lines(LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((100, 2.0), (200, 0.02)))

    assert [line.split(":")[0] for _, line in logged] == [
        "network-bound since step 2",
        "compute-bound since step 101",
    ]


def test_a_share_at_the_limit_does_not_flicker():
    # Between a fifth of the step, where the verdict begins, and a sixth, where it ends.
    logged = lines(
        LiveDiagnosis(CONFIG, TWO, BASE_BYTES), noisy((100, 0.30), *[(30, 0.17), (30, 0.26)] * 10)
    )

    assert len(logged) == 1


def straggling(hosts: list[str], late_s: Callable[[int], list[float]], of="compute_s") -> list[str]:
    """What is logged over 100 steps; `late_s` of the number of a step: how much longer than the
    first each rank computes, or waits for data. The others wait for the last one."""
    live = LiveDiagnosis(CONFIG, hosts, BASE_BYTES)
    usual = {"compute_s": 0.9, "data_s": 0.002}[of]
    logged = [
        after(
            live,
            step,
            [parts(0.02 + max(late_s(step)) - own, **{of: usual + own}) for own in late_s(step)],
        )
        for step in range(1, 101)
    ]
    return [line for line in logged if line]


def test_the_host_that_all_wait_for_is_named():
    assert straggling(FOUR, lambda _: [0.01, 0.0, 0.49, 0.02]) == [
        "straggler since step 2: 35 % of the step waits for node-c"
    ]


def test_a_straggler_may_be_the_host_of_rank_0_which_itself_hardly_waits():
    (line,) = straggling(TWO, lambda _: [0.5, 0.0])

    assert line.startswith("straggler since step 2: ")
    assert line.endswith("waits for node-a")


def test_of_several_ranks_on_a_host_the_late_one_is_named():
    (line,) = straggling(["node-a", "node-a", "node-b", "node-b"], lambda _: [0.0, 0.0, 0.0, 0.5])

    assert line.endswith("waits for rank 3 on node-b")


def test_ranks_of_one_host_go_by_their_numbers():
    (line,) = straggling(["node-a", "node-a"], lambda _: [0.0, 0.5])

    assert line.endswith("waits for rank 1")


def in_turn(step: int) -> list[float]:
    return [0.5 if step // 3 % 4 == rank else 0.0 for rank in range(4)]


def test_stragglers_in_turn_are_not_blamed_on_one():
    (line,) = straggling(FOUR, in_turn)

    assert line.endswith("waits for now one rank and now another")


def test_data_that_is_late_now_here_and_now_there_is_the_datas_fault():
    (line,) = straggling(FOUR, in_turn, of="data_s")

    assert line == "input-bound since step 2: 35 % of the step waits for data"


def test_a_host_whose_data_always_is_late_is_a_straggler():
    (line,) = straggling(TWO, lambda _: [0.0, 0.5], of="data_s")

    assert line.startswith("straggler since step 2: ")


def test_waiting_for_data_is_logged():
    live = LiveDiagnosis(CONFIG, TWO[:1], BASE_BYTES)
    logged = [after(live, step, [parts(0.0, data_s=0.6)]) for step in range(1, 101)]

    assert [line for line in logged if line] == [
        "input-bound since step 2: 40 % of the step waits for data"
    ]


def test_communication_that_cannot_be_told_from_computing_is_not_blamed():
    live = LiveDiagnosis(CONFIG, TWO, BASE_BYTES)

    assert not any(after(live, step, [parts(None, compute_s=5.0)] * 2) for step in range(1, 101))
    assert np.isnan(live.steps["network_s"]).all()


def test_many_small_messages_that_take_long_are_latency():
    live = LiveDiagnosis(CONFIG, FOUR, 4e6)
    each = parts(0.3, compute_s=0.3, rest_s=0.14)
    logged = [after(live, step, [each] * 4) for step in range(1, 201)]

    assert next(line for line in logged if line).startswith("latency-bound since step 2: 40 %")


@pytest.mark.parametrize("step_s", [1e-3, 100.0])
def test_fast_steps_and_slow_ones_are_judged_by_enough_of_both(step_s):
    live = LiveDiagnosis(CONFIG, TWO, BASE_BYTES)
    each = parts(step_s / 2, compute_s=step_s / 2, data_s=0.0, rest_s=0.0)
    at = next(step for step in itertools.count(1) if after(live, step, [each] * 2))

    assert at >= 21
    assert at * step_s >= 30.0


def test_memory_is_bounded():
    live = LiveDiagnosis(CONFIG, TWO, BASE_BYTES)
    for step in range(1, 4 * MOST_STEPS):
        after(live, step, [parts(1e-3, compute_s=1e-3)] * 2)

    assert len(live.steps) == MOST_STEPS


def test_a_step_that_hung_changes_nothing():
    live = LiveDiagnosis(CONFIG, TWO, BASE_BYTES)
    waits = [4000.0 if step == 100 else 0.02 for step in range(1, 200)]

    assert lines(live, waits) == []
    assert 100 not in live.steps.step
