"""What one rank meets reaches all, and what all compute does not depend on their number."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import MODEL, folder_of

pytestmark = pytest.mark.timeout(480)  # with what all ranks play first

# The order of floating-point sums differs; measured 5e-7 and 1e-7 over 20 steps (2026-11).
SAME_LOSS = 5e-6
SAME_NORM = 1e-5


def same(step, other):
    return step.loss == pytest.approx(other.loss, abs=SAME_LOSS) and (
        step.gradient_norm == pytest.approx(other.gradient_norm, rel=SAME_NORM)
    )


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_any_number_of_ranks_computes_the_same_losses_and_gradients(one, ranks, request):
    alone = one.steps("with_dropout")
    together = request.getfixturevalue(ranks).steps("with_dropout")
    assert sorted(alone) == sorted(together) == list(range(1, 21))
    assert all(same(alone[step], together[step]) for step in alone)


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_any_number_of_ranks_ends_with_the_same_weights(one, ranks, request):
    """Of three, one has two of the four micro-batches of a step, and the others one each."""
    played = request.getfixturevalue(ranks)
    alone, together = (
        load_file(each.run("with_dropout").checkpoints / folder_of(20) / MODEL)
        for each in (one, played)
    )
    assert sorted(alone) == sorted(together)
    for name, tensor in alone.items():
        np.testing.assert_allclose(tensor, together[name], atol=1e-5)


def test_a_signal_to_one_rank_stops_all_after_the_same_step(two):
    endings = [seen["ending"] for seen in two.seen("signal")]
    assert [(end["state"], end["cause"], end["step"]) for end in endings] == [
        ("preempted", "signal", 3)
    ] * 2
    assert [end["culprit_rank"] for end in endings] == [1, 1]
    assert [c.step for c in all_checkpoints(two.run("signal").checkpoints)] == [3]


def test_a_loss_that_is_no_number_on_one_rank_skips_the_same_update_on_all(two):
    steps = two.steps("nan")
    assert [step for step in steps if not steps[step].updated] == [3]
    assert [(i.step, i.category) for i in two.incidents("nan")] == [(3, "update-skipped")]
    first, second = two.seen("nan")
    assert (first["ending"]["cause"], first["ending"]["step"]) == ("steps", 8)
    assert first["weights"] == second["weights"]


@pytest.mark.parametrize("ranks", ["two", "three"])
def test_a_rank_that_runs_out_of_memory_costs_no_pair_and_no_other_rank(ranks, request):
    played = request.getfixturevalue(ranks)
    undisturbed, disturbed = played.steps("plain"), played.steps("out_of_memory")
    assert sorted(disturbed) == list(range(1, 9))
    assert all(same(undisturbed[step], disturbed[step]) for step in disturbed)
    weights = [seen["weights"] for seen in played.seen("out_of_memory")]
    assert all(other == weights[0] for other in weights)
    incidents = played.incidents("out_of_memory")
    who = [(incident.step, incident.ranks) for incident in incidents]
    if ranks == "two":  # of three, rank 1 has a single micro-batch and nothing to accumulate
        assert who == [(1, (1,)), (2, (1,)), (4, (0,)), (5, (1,)), (7, (0, 1))]
    assert {(incident.category, incident.pieces) for incident in incidents} == {
        ("out-of-memory", 2)
    }
    assert 1 in incidents[-1].ranks


def test_memory_is_missing_at_every_point_of_backward(two):
    """Otherwise the test above would say nothing of buckets that only the others have sent."""
    sent = [count for seen in two.seen("out_of_memory") for count in seen["sent"]]
    assert all(total > 5 for _, total in sent)
    assert any(before == 0 for before, _ in sent)
    assert any(0 < before < total for before, total in sent)


def test_what_was_left_of_a_step_is_given_back_before_it_is_repeated(two):
    assert [seen["freed"] for seen in two.seen("out_of_memory")] == [[True] * 5] * 2


def test_memory_that_the_system_refuses_to_one_rank_is_got_by_with(two):
    """No fault put in: the allocator itself fails, wherever in forward or backward that is."""
    undisturbed, run = two.steps("memory_limit", "undisturbed"), two.steps("memory_limit")
    assert sorted(run) == [1, 2]
    assert all(same(undisturbed[step], run[step]) for step in run)
    assert {(i.step, i.ranks) for i in two.incidents("memory_limit")} == {(2, (1,))}


def test_micro_batches_are_cut_down_to_single_pairs(two):
    assert same(two.steps("plain")[3], two.steps("single_pairs")[3])
    assert [incident.pieces for incident in two.incidents("single_pairs")] == [2, 4, 8]


def test_when_not_even_a_pair_fits_all_stop_with_one_sentence(two):
    assert "step 3: rank 1 on " in two.said("not_even_a_pair")
    first, _ = two.seen("not_even_a_pair")
    assert (first["error"], first["culprit"][0]) == ("OutOfMemoryError", 1)
    (end,) = two.endings("not_even_a_pair")
    assert (end.step, end.cause, end.culprit_rank) == (2, "out-of-memory", 1)


def test_other_weights_are_named_with_tensors_and_the_last_step_without_them(two, three):
    tensors = (
        "since after step 2: decoder.0.cross_attention.query.weight, "
        "decoder.0.cross_attention.key_value.weight (2 of 30 tensors)"
    )
    said = three.said("other_weights")
    assert said.startswith("step 4: rank 2 on ")
    assert f"has other weights than the rest, {tensors}" in said
    # Of two nobody knows which one is right.
    assert f"hold different weights, {tensors}" in two.said("other_weights")
    assert [(i.step, i.category, i.ranks) for i in three.incidents("other_weights")] == [
        (4, "weights-differ", (2,))
    ]
    (end,) = three.endings("other_weights")
    assert (end.cause, end.culprit_rank) == ("weights-differ", 2)
    (end,) = two.endings("other_weights")
    assert (end.cause, end.culprit_rank) == ("weights-differ", None)


@pytest.mark.parametrize(
    ("ranks", "scenario", "difference"),
    [
        ("two", "other_code", "code of Dragoman: 'of-the-last-rank' instead of 'usual'"),
        ("three", "other_seed", "training.seed: 2 instead of 1"),
        ("three", "other_data", "prepared data: "),
    ],
)
def test_a_rank_that_differs_is_refused_by_name(ranks, scenario, difference, request):
    played = request.getfixturevalue(ranks)
    last = len(played.seen(scenario)) - 1
    said = played.said(scenario)
    assert said.startswith(f"rank {last} on ")
    assert f"differs from the rest in its {difference}" in said
    assert not played.run(scenario).root.exists()


def test_a_host_without_data_is_named(two):
    assert "nowhere: holds no prepared data" in two.said("no_data")
    assert two.said("no_data").startswith("rank 1 on ")


def test_a_host_without_checkpoints_does_not_send_all_back_to_the_beginning(two):
    """Step 7 fails each time; of what was saved, 6 is the newest from before it."""
    assert two.said("roll_back_elsewhere").startswith("step 7: ")
    (incident,) = two.incidents("roll_back_elsewhere", "host0/run")
    assert (incident.category, incident.rollback_step) == ("rollback", 6)
    assert two.endings("roll_back_elsewhere", "host0/run")[-1].cause == "diverged"
    for host in range(2):
        run = two.run("roll_back_elsewhere", f"host{host}/run")
        assert 6 in [c.step for c in all_checkpoints(run.checkpoints)]


@pytest.mark.parametrize("ranks", ["two", "three"])
def test_a_checkpoint_that_one_host_has_is_enough_for_all(ranks, request):
    """Bit for bit: sent over the network it is still the same checkpoint."""
    played = request.getfixturevalue(ranks)
    undisturbed = played.steps("plain")
    resumed = played.steps("restore_elsewhere", "host0/run") | played.steps(
        "restore_elsewhere", "host1/run"
    )
    assert {n: step.loss for n, step in resumed.items()} == {
        n: step.loss for n, step in undisturbed.items()
    }
    weights = [seen["weights"] for seen in played.seen("restore_elsewhere")]
    assert all(other == played.seen("plain")[0]["weights"] for other in weights)
