"""The modes of synchronization between real ranks: same bits, same learning, exact resume."""

import pytest
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import OPTIMIZER, STATE
from dragoman.rundir import read_json
from dragoman.telemetry.events import Evaluated, SyncChosen

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


def saved_at(run, step):
    return load_file(run.checkpoints / f"step-{step:08d}" / OPTIMIZER)


def sent_and_predicted(played, scenario, run):
    """In the step with the least: on loopback the programs beside this one are counted too."""
    steps = played.steps(scenario, run).values()
    return min((s.traffic_bytes["sent"], s.traffic_bytes["predicted"]) for s in steps)


def test_half_of_the_bytes_are_predicted_and_counted(two_in_modes):
    exact, halved = (sent_and_predicted(two_in_modes, "bf16", run) for run in ("exact", "bf16"))
    assert halved[1] == pytest.approx(exact[1] / 2, rel=1e-3)
    # Other programs can only add to what is counted.
    assert halved[0] >= halved[1]
    assert exact[0] >= exact[1]


MODES = pytest.mark.parametrize("mode", ["local", "diloco", "burst"])


@MODES
def test_common_weights_are_equal_and_learn_as_they_would_exactly(mode, two_in_modes):
    first, second = weights_of(two_in_modes, "local_steps", mode)
    assert first == second != {}
    exact, steps = (losses(two_in_modes, "local_steps", run) for run in ("exact", mode))
    assert sorted(steps) == sorted(exact)
    # Losses of all ranks: before the first synchronization too, they are of the same pairs.
    assert steps[1] == pytest.approx(exact[1], abs=1e-5)
    assert steps[22] < 0.7 * steps[1]
    assert steps[22] == pytest.approx(exact[22], rel=0.1)


@MODES
def test_a_run_stopped_while_weights_travel_resumes_bit_for_bit(mode, two_in_modes):
    for seen in two_in_modes.seen("local_steps"):
        ending = seen[f"{mode}-first"]["ending"]
        assert (ending["state"], ending["cause"], ending["step"]) == ("preempted", "signal", 9)
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


def test_a_checkpoint_has_what_was_on_its_way_and_the_weights_of_each_rank(two_in_modes):
    """After step 9: of two fragments, one has set out after step 8 and arrives after step 10."""
    held = saved_at(two_in_modes.run("local_steps", "local"), 9)
    travelling = {name.partition("|")[0] for name in held if name.endswith("|outer_mean")}
    assert 0 < len(travelling) < len({name for name in held if name.endswith("|weight@0")})
    assert {f"{name}|outer_departed@{island}" for name in travelling for island in (0, 1)} == {
        name for name in held if "outer_departed" in name
    }
    own = [held[f"{name}|weight@{island}"] for name in sorted(travelling) for island in (0, 1)]
    assert any((a != b).any() for a, b in zip(own[::2], own[1::2], strict=True))
    # After the last step all hold the same, and nothing is on its way.
    last = saved_at(two_in_modes.run("local_steps", "local"), 22)
    assert not any("outer_mean" in name for name in last)
    assert all(
        (last[name] == last[name.replace("@0", "@1")]).all()
        for name in last
        if name.endswith("|weight@0")
    )


@MODES
def test_saves_and_evaluations_wait_for_nothing(mode, two_in_modes):
    run = two_in_modes.run("local_steps", mode)
    assert [e.step for e in events(run, Evaluated)] == [9, 18, 22]
    assert {9, 18, 22} <= {c.step for c in all_checkpoints(run.checkpoints)}


def test_bytes_are_predicted_where_fragments_travel(two_in_modes):
    exact = two_in_modes.steps("local_steps", "exact")[1].traffic_bytes["predicted"]
    predicted = {
        mode: [
            step.traffic_bytes["predicted"] / exact
            for _, step in sorted(two_in_modes.steps("local_steps", mode).items())
        ]
        for mode in ("local", "diloco", "burst")
    }
    # Half of the bytes in bf16, once in four steps.
    assert predicted["burst"] == pytest.approx([0, 0, 0, 0.5] * 5 + [0, 0.5], rel=0.01)
    # One fragment or another is on its way in all steps but the first two, once in a window each.
    assert predicted["local"][:2] == [0, 0]
    for at in range(2, 17):
        assert sum(predicted["local"][at : at + 4]) == pytest.approx(1, rel=1e-3)
    assert sum(predicted["diloco"][2:20]) == pytest.approx(3 / 8, rel=0.2)


def test_memory_that_runs_out_while_weights_travel_costs_no_pair(two_in_modes):
    short, whole = (losses(two_in_modes, "local_steps", run) for run in ("short", "whole"))
    assert sorted(short) == list(range(1, 9))
    assert all(short[step] == pytest.approx(whole[step], abs=1e-5) for step in short)
    first, second = weights_of(two_in_modes, "local_steps", "short")
    assert first == second


@pytest.mark.parametrize("step", [3, 4], ids=["while weights travel", "as they arrive"])
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


def test_a_rollback_goes_to_the_checkpoint_before(two_in_modes):
    assert two_in_modes.said("local_not_finite", "rollback").startswith("step 7: ")
    (incident,) = two_in_modes.incidents("local_not_finite", "rollback")
    assert incident.category == "rollback"
    assert 0 < incident.rollback_step < 7


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
    assert [number for number in steps if not steps[number].traffic_bytes["predicted"]] == [1, 2]


def chosen(played, run):
    return [
        (event.step, event.settings["mode"], event.settings["wire"])
        for event in events(played.run("auto", run), SyncChosen)
    ]


def test_auto_goes_on_with_what_a_faster_or_slower_network_allows(two_in_modes):
    """A look with the seventh step of a loop; what is enough is not changed again."""
    assert chosen(two_in_modes, "faster") == [(0, "local", "4bit"), (7, "fp32", None)]
    assert chosen(two_in_modes, "slower") == [(0, "fp32", None), (7, "local", "4bit")]
    for run in ("faster", "slower"):
        first, second = weights_of(two_in_modes, "auto", run)
        assert first == second != {}
        recorded = losses(two_in_modes, "auto", run)
        assert sorted(recorded) == [*range(1, 21)]
        assert recorded[20] < 0.95 * recorded[1]
    predicted = {
        number: step.traffic_bytes["predicted"]
        for number, step in two_in_modes.steps("auto", "faster").items()
    }
    assert predicted[7] < predicted[8] / 8
    assert predicted[8] == predicted[20]


def test_a_resumed_run_keeps_what_auto_has_chosen_bit_for_bit(two_in_modes):
    straight, stopped = (losses(two_in_modes, "auto", run) for run in ("straight", "stopped"))
    assert straight == stopped
    weights = weights_of(two_in_modes, "auto", "stopped")
    assert weights == weights_of(two_in_modes, "auto", "straight")
    assert chosen(two_in_modes, "stopped") == [(0, "local", "4bit")]
