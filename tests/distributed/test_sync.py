"""The modes of synchronization between real ranks: same bits, same learning, exact resume."""

import pytest
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import OPTIMIZER, STATE
from dragoman.rundir import read_json
from dragoman.telemetry.events import Evaluated

pytestmark = pytest.mark.timeout(480)  # with what all ranks play first

# Each gradient keeps 8 of its 24 bits; measured 2e-4 over 20 steps (2026-11).
CLOSE_LOSS = 2e-3


def weights_of(played, scenario, run):
    return [seen[run]["weights"] for seen in played.seen(scenario)]


def losses(played, scenario, run):
    return {step: done.loss for step, done in played.steps(scenario, run).items()}


@pytest.mark.parametrize("ranks", ["two_in_modes", "three_in_modes"])
def test_gradients_in_bf16_leave_the_same_bits_on_all_ranks(ranks, request):
    played = request.getfixturevalue(ranks)
    for run in ("bf16", "out-of-memory"):
        first, *others = weights_of(played, "bf16", run)
        assert all(other == first for other in others)
    assert weights_of(played, "bf16", "bf16") != weights_of(played, "bf16", "exact")


@pytest.mark.parametrize("ranks", ["two_in_modes", "three_in_modes"])
def test_gradients_in_bf16_train_like_exact_ones(ranks, request):
    played = request.getfixturevalue(ranks)
    exact, halved = losses(played, "bf16", "exact"), losses(played, "bf16", "bf16")
    assert sorted(exact) == sorted(halved) == list(range(1, 21))
    assert all(halved[step] == pytest.approx(exact[step], abs=CLOSE_LOSS) for step in exact)
    assert halved[20] < 0.95 * halved[1]


@pytest.mark.parametrize("ranks", ["two_in_modes", "three_in_modes"])
def test_a_run_in_bf16_resumes_bit_for_bit(ranks, request):
    played = request.getfixturevalue(ranks)
    assert losses(played, "bf16", "stopped") == losses(played, "bf16", "bf16")
    assert weights_of(played, "bf16", "stopped") == weights_of(played, "bf16", "bf16")


@pytest.mark.parametrize("ranks", ["two_in_modes", "three_in_modes"])
def test_memory_that_runs_out_costs_no_pair_in_bf16(ranks, request):
    played = request.getfixturevalue(ranks)
    steps, undisturbed = (losses(played, "bf16", run) for run in ("out-of-memory", "undisturbed"))
    assert sorted(steps) == list(range(1, 9))
    assert all(steps[n] == pytest.approx(undisturbed[n], abs=CLOSE_LOSS) for n in steps)
    assert [(i.step, i.ranks) for i in played.incidents("bf16", "out-of-memory")] == [
        (2, (1,)),
        (4, (0,)),
    ]


def sent_and_predicted(played, scenario, run):
    """In the step with the least: on loopback the programs beside this one are counted too."""
    steps = played.steps(scenario, run).values()
    return min((s.traffic_bytes["sent"], s.traffic_bytes["predicted"]) for s in steps)


def test_half_of_the_bytes_are_predicted_and_counted(two_in_modes):
    exact, halved = (sent_and_predicted(two_in_modes, "bf16", run) for run in ("exact", "bf16"))
    assert halved[1] == pytest.approx(exact[1] / 2)
    # What the messages of a tiny model add is the same for both.
    assert exact[0] - halved[0] == pytest.approx(exact[1] / 2, rel=0.3)


MODES = pytest.mark.parametrize("mode", ["local", "diloco"])
WINDOW = {"local": 4, "diloco": 6}


@MODES
def test_ranks_are_equal_after_a_synchronization_and_learn_as_they_would_exactly(
    mode, two_in_modes
):
    first, second = weights_of(two_in_modes, "local_steps", mode)
    assert first == second != {}
    exact, steps = (losses(two_in_modes, "local_steps", run) for run in ("exact", mode))
    assert sorted(steps) == sorted(exact)
    # Losses of all ranks: before the first synchronization too, they are of the same pairs.
    assert steps[1] == pytest.approx(exact[1], abs=1e-5)
    assert steps[22] < 0.7 * steps[1]
    assert steps[22] == pytest.approx(exact[22], rel=0.1)


@MODES
def test_a_run_stopped_inside_a_window_ends_it_and_resumes_bit_for_bit(mode, two_in_modes):
    for seen in two_in_modes.seen("local_steps"):
        ending = seen[f"{mode}-first"]["ending"]
        assert (ending["state"], ending["cause"], ending["step"]) == ("preempted", "signal", 12)
        assert ending["culprit_rank"] == 1
    undisturbed, stopped = (
        losses(two_in_modes, "local_steps", run) for run in (mode, f"{mode}-stopped")
    )
    assert stopped == undisturbed
    weights = weights_of(two_in_modes, "local_steps", f"{mode}-stopped")
    assert weights == weights_of(two_in_modes, "local_steps", mode)
    states = [
        load_file(two_in_modes.run("local_steps", run).checkpoints / "latest" / OPTIMIZER)
        for run in (mode, f"{mode}-stopped")
    ]
    assert states[0].keys() == states[1].keys()
    assert all((states[0][name] == states[1][name]).all() for name in states[0])
    assert any(name.endswith("exp_avg@1") for name in states[0])


@MODES
def test_saves_and_evaluations_wait_for_the_end_of_a_window(mode, two_in_modes):
    run = two_in_modes.run("local_steps", mode)
    steps = [checkpoint.step for checkpoint in all_checkpoints(run.checkpoints)]
    assert steps == [*range(WINDOW[mode], 22, WINDOW[mode]), 22]
    evaluated = [e.step for e in events(run, Evaluated)]
    # Due at 9 and 18, and at the end.
    assert evaluated == ([12, 20, 22] if mode == "local" else [12, 18, 22])


@MODES
def test_bytes_are_predicted_where_ranks_synchronize(mode, two_in_modes):
    steps = two_in_modes.steps("local_steps", mode)
    exact = two_in_modes.steps("local_steps", "exact")[1].traffic_bytes["predicted"]
    predicted = {number: step.traffic_bytes["predicted"] for number, step in steps.items()}
    ends = {*range(WINDOW[mode], 22, WINDOW[mode]), 22}
    assert predicted == {number: exact if number in ends else 0 for number in steps}
    assert all((steps[number].parts_s["communication"] > 0) == (number in ends) for number in steps)


def test_memory_that_runs_out_inside_a_window_costs_no_pair(two_in_modes):
    short, whole = (losses(two_in_modes, "local_steps", run) for run in ("short", "whole"))
    assert sorted(short) == list(range(1, 9))
    assert all(short[step] == pytest.approx(whole[step], abs=1e-5) for step in short)
    first, second = weights_of(two_in_modes, "local_steps", "short")
    assert first == second


@pytest.mark.parametrize("step", [3, 4], ids=["inside a window", "at its end"])
def test_gradients_that_are_not_finite_on_one_rank_skip_the_update_of_all(step, two_in_modes):
    run = f"nan-{step}"
    steps = two_in_modes.steps("local_not_finite", run)
    assert [number for number in steps if not steps[number].updated] == [step]
    incidents = two_in_modes.incidents("local_not_finite", run)
    assert [(i.step, i.category) for i in incidents] == [(step, "update-skipped")]
    first, second = weights_of(two_in_modes, "local_not_finite", run)
    assert first == second
    # The loss scale has fallen on both, so that the same one is resumed with.
    state = read_json(two_in_modes.run("local_not_finite", run).checkpoints / "latest" / STATE)
    assert state["run"]["loss_scaling"]["scale"] == 65536 / 2


def test_a_rollback_goes_to_a_synchronized_checkpoint(two_in_modes):
    assert two_in_modes.said("local_not_finite", "rollback").startswith("step 7: ")
    (incident,) = two_in_modes.incidents("local_not_finite", "rollback")
    assert (incident.category, incident.rollback_step) == ("rollback", 4)


def test_hosts_that_keep_their_own_moments_resume_bit_for_bit(two_in_modes):
    """Also where one of them was killed before it had saved the newest step."""
    first, second = weights_of(two_in_modes, "local_hosts", "resumed")
    assert first == second == weights_of(two_in_modes, "local_hosts", "together")[0]
    recorded = losses(two_in_modes, "local_hosts", "host0/run")
    together = losses(two_in_modes, "local_hosts", "together")
    assert {step: loss for step, loss in recorded.items() if step <= 16} == together


def test_a_host_that_has_lost_its_moments_goes_on_with_those_of_another(two_in_modes):
    for seen in two_in_modes.seen("local_hosts"):
        assert (seen["lost"]["ending"]["state"], seen["lost"]["ending"]["step"]) == ("finished", 20)
    first, second = weights_of(two_in_modes, "local_hosts", "lost")
    assert first == second


def test_hosts_of_several_ranks_are_exact_inside_and_synchronize_between(three_in_modes):
    weights = weights_of(three_in_modes, "host_islands", "run")
    assert weights[0] == weights[1] == weights[2] != {}
    steps = three_in_modes.steps("host_islands")
    assert [number for number in steps if steps[number].traffic_bytes["predicted"]] == [4, 8, 12]
