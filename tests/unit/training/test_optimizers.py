import json

import pytest
import torch
from recorded import events
from schedulefree import AdamWScheduleFree

from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.config import Config, ModelSettings, OptimizerSettings, load_config
from dragoman.decoding.trained import load_trained
from dragoman.distributed.group import Group
from dragoman.evaluation.heldout import HeldOut
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.optimizers import (
    Muon,
    Optimizer,
    count_keys,
    is_for_muon,
    optimizer_shapes,
    orthogonalized,
)
from dragoman.training.tensors import shapes_of

TINY = ModelSettings(preset="transformer-tiny", width=32, heads=4, filter=48, encoder_layers=1)
KINDS = {
    "adamw": OptimizerSettings(weight_decay=0.01),
    "average": OptimizerSettings(average_decay=0.9),
    "schedule-free": OptimizerSettings(kind="schedule-free", weight_decay=0.01),
    "muon": OptimizerSettings(kind="muon", muon_rate_factor=2.0, weight_decay=0.01),
    "muon with average": OptimizerSettings(kind="muon", average_decay=0.99),
}
every_kind = pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
# As settings of a run of the digits language.
RUNS = {
    "average": ["optimizer.average_decay=0.9"],
    "schedule-free": ["optimizer.kind=schedule-free", "schedule.kind=constant"],
    "muon": ["optimizer.kind=muon"],
}
every_run = pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)


def fresh(settings):
    torch.manual_seed(1)
    model = Transformer(TINY, 50)
    return model, Optimizer(model, settings)


def update(model, optimizer, step, rate=0.01):
    """One update with gradients that follow from the step alone."""
    torch.manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.set_rate(rate)
    for part in optimizer.parts:
        part.step()
    optimizer.update_average()


def copied(tensors):
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def saved(model, optimizer):
    """What a checkpoint would hold, its state as text."""
    weights = copied(optimizer.averaged() or model.state_dict())
    return weights, copied(optimizer.tensors()), json.dumps(optimizer.counts)


def assert_equal(some, others):
    assert some.keys() == others.keys()
    assert all(torch.equal(some[name], others[name]) for name in some)


@every_kind
def test_a_loaded_checkpoint_goes_on_bit_for_bit(settings):
    model, optimizer = fresh(settings)
    for step in range(1, 5):
        update(model, optimizer, step, rate=0.001 * step)
    weights, tensors, counts = saved(model, optimizer)
    trained = copied(model.state_dict())

    other, other_optimizer = fresh(settings)
    update(other, other_optimizer, 77)  # as before a rollback: nothing of it may stay
    backwards = dict(sorted(weights.items(), reverse=True))  # files have an order of their own
    other_optimizer.load(backwards, tensors, json.loads(counts))
    assert_equal(dict(other.state_dict()), trained)
    assert_equal(other_optimizer.averaged() or trained, optimizer.averaged() or trained)
    for step in range(5, 9):
        update(model, optimizer, step)
        update(other, other_optimizer, step)
    assert_equal(dict(other.state_dict()), dict(model.state_dict()))
    assert_equal(other_optimizer.averaged() or {}, optimizer.averaged() or {})
    assert other_optimizer.counts == optimizer.counts


@every_kind
def test_loading_initial_weights_alone_is_a_new_run(settings):
    model, optimizer = fresh(settings)
    initial = copied(model.state_dict())
    for step in (1, 2):
        update(model, optimizer, step)
    after_two = copied(model.state_dict())
    optimizer.load(initial, {}, {})
    assert (optimizer.tensors(), optimizer.counts) == ({}, {})
    assert_equal(optimizer.averaged() or initial, initial)
    for step in (1, 2):
        update(model, optimizer, step)
    assert_equal(dict(model.state_dict()), after_two)


@every_kind
def test_shapes_and_counts_of_the_state_are_known_in_advance(settings):
    model, optimizer = fresh(settings)
    assert (optimizer.tensors(), optimizer.counts) == ({}, {})
    update(model, optimizer, 1)
    found = {name: tuple(tensor.shape) for name, tensor in optimizer.tensors().items()}
    assert found == optimizer_shapes(shapes_of(model), settings)
    assert tuple(optimizer.counts) == count_keys(settings)
    assert all(tensor.dtype == torch.float32 for tensor in optimizer.tensors().values())


@every_kind
def test_asking_for_the_average_changes_nothing(settings):
    (model, optimizer), (other, other_optimizer) = fresh(settings), fresh(settings)
    for step in range(1, 4):
        update(model, optimizer, step)
        update(other, other_optimizer, step)
        saved(other, other_optimizer)
    assert_equal(dict(model.state_dict()), dict(other.state_dict()))


@every_kind
def test_what_ranks_compare_includes_what_translates(settings):
    """An average that has drifted on one rank would never show in the weights that train."""
    model, optimizer = fresh(settings)
    update(model, optimizer, 1)
    before = copied(optimizer.compared())
    assert before.keys() >= shapes_of(model).keys()
    averaged = optimizer.averaged()
    if averaged is None:
        assert before.keys() == shapes_of(model).keys()
        return
    state = optimizer.parts[0].state[model.decoder_norm.bias]
    kept = state["z"] if "z" in state else averaged["decoder_norm.bias"]
    kept += 1
    changed = [name for name, t in optimizer.compared().items() if not torch.equal(t, before[name])]
    assert [name.partition("|")[0] for name in changed] == ["decoder_norm.bias"]


def test_schedule_free_translates_with_what_the_package_evaluates():
    model, optimizer = fresh(KINDS["schedule-free"])
    for step in range(1, 5):
        update(model, optimizer, step)
    averaged = copied(optimizer.averaged())
    assert not torch.equal(averaged["embedding.weight"], model.embedding.weight)
    (package,) = optimizer.parts
    assert isinstance(package, AdamWScheduleFree)
    package.eval()
    assert_equal(averaged, dict(model.state_dict()))


def test_the_warm_up_of_the_schedule_is_that_of_schedule_free():
    """The average counts an update by its rate, so that early ones count less."""
    model, optimizer = fresh(OptimizerSettings(kind="schedule-free"))
    other, _ = fresh(OptimizerSettings())
    package = AdamWScheduleFree(
        other.parameters(), lr=0.01, betas=(0.9, 0.997), eps=1e-9, warmup_steps=4
    )
    package.train()
    for step in range(1, 8):
        update(model, optimizer, step, rate=0.01 * min(1.0, step / 4))
        torch.manual_seed(step)
        for parameter in other.parameters():
            parameter.grad = torch.randn_like(parameter)
        package.step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_the_moving_average_begins_short_and_becomes_as_long_as_it_is_set():
    model, optimizer = fresh(OptimizerSettings(average_decay=0.5))
    expected = model.decoder_norm.bias.detach().clone()
    for step in range(1, 30):
        update(model, optimizer, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.decoder_norm.bias.detach()
    torch.testing.assert_close(optimizer.averaged()["decoder_norm.bias"], expected)


def test_muon_takes_the_matrices_of_the_layers_and_adam_the_rest():
    model, optimizer = fresh(KINDS["muon"])
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    muon, adam = (
        {names[id(parameter)] for group in part.param_groups for parameter in group["params"]}
        for part in optimizer.parts
    )
    assert muon == {name for name, p in model.named_parameters() if is_for_muon(name, p.ndim)}
    assert muon | adam == set(names.values())
    assert "embedding.weight" in adam
    assert all(name.endswith(("bias", "norm.weight")) for name in adam - {"embedding.weight"})
    optimizer.set_rate(0.1)
    rates = [{group["lr"] for group in part.param_groups} for part in optimizer.parts]
    assert rates == [{0.2}, {0.1}]


@pytest.mark.parametrize("shape", [(48, 32), (32, 48), (32, 32)])
def test_muon_in_fp32_is_that_of_torch_up_to_the_rounding_of_bf16(shape):
    weights = [torch.nn.Parameter(torch.ones(shape)) for _ in range(2)]
    ours, torchs = (
        kind([weight], lr=0.1, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
        for kind, weight in zip((Muon, torch.optim.Muon), weights, strict=True)
    )
    for step in range(5):
        torch.manual_seed(step)
        gradient = torch.randn(shape)
        for weight, optimizer in zip(weights, (ours, torchs), strict=True):
            weight.grad = gradient.clone()
            optimizer.step()
    moved = (weights[0] - 1).norm()
    assert (weights[0] - weights[1]).norm() < 0.01 * moved  # measured 0.003
    assert torch.equal(
        ours.state[weights[0]]["momentum_buffer"], torchs.state[weights[1]]["momentum_buffer"]
    )


def test_muon_takes_matrices_of_one_shape_together_in_bf16():
    torch.manual_seed(1)
    shapes = [(48, 32), (32, 48), (48, 32), (32, 32), (48, 32)]
    starts = [torch.randn(shape) for shape in shapes]
    gradients = [torch.randn(shape) for shape in shapes]
    moved = {}
    for dtype in (torch.float32, torch.bfloat16):
        weights = [torch.nn.Parameter(start.clone()) for start in starts]
        optimizer = Muon(weights, dtype=dtype, lr=0.1, adjust_lr_fn="match_rms_adamw")
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        optimizer.step()
        moved[dtype] = [w.detach() - start for w, start in zip(weights, starts, strict=True)]
    for exact, rounded in zip(*moved.values(), strict=True):
        assert (exact - rounded).norm() < 0.2 * exact.norm()  # measured 0.05
        assert not torch.equal(exact, rounded)


@pytest.mark.parametrize("shape", [(48, 32), (32, 48)])
def test_an_orthogonalized_matrix_has_singular_values_near_one(shape):
    torch.manual_seed(1)
    (group,) = Muon([torch.nn.Parameter(torch.ones(shape))]).param_groups
    values = torch.linalg.svdvals(orthogonalized(torch.randn(shape) * 1e-4, group))
    assert 0.6 < values.min() < values.max() < 1.3
    assert torch.equal(orthogonalized(torch.zeros(shape), group), torch.zeros(shape))


def losses(run):
    return {event.step: event.loss for event in events(run, StepDone)}


@every_run
def test_a_resumed_run_is_the_uninterrupted_one_however_often_it_evaluates(run_with, changes):
    run_with(*changes, "training.steps=7", "evaluation.every_steps=2")
    _, run = run_with(*changes, "training.steps=12", "evaluation.every_steps=5")
    _, whole = run_with(*changes, "training.steps=12", "evaluation.every_steps=100", name="whole")
    assert losses(run) == losses(whole)
    one, other = (Checkpoint((r.checkpoints / "latest").resolve()) for r in (run, whole))
    assert_equal(one.model(), other.model())
    assert_equal(one.optimizer(), other.optimizer())
    assert one.state()["run"]["optimizer"] == other.state()["run"]["optimizer"]


@every_run
def test_what_was_evaluated_is_what_translates(run_with, changes):
    _, run = run_with(*changes, "training.steps=12", "schedule.warmup_steps=4")
    config = load_config(run.config)
    trained = load_trained(run, "latest", 1, torch.device("cpu"))
    loss = validation_loss(config, trained.model)
    assert loss == events(run, Evaluated)[-1].validation_loss
    latest = Checkpoint((run.checkpoints / "latest").resolve())
    if changes == RUNS["muon"]:
        assert not any(name.endswith("|weight") for name in latest.optimizer())
        return
    with_those_that_train = Transformer(config.model, 60)
    with_those_that_train.load_state_dict(
        {name: latest.optimizer()[f"{name}|weight"] for name in latest.model()}
    )
    assert abs(validation_loss(config, with_those_that_train) - loss) > 1e-4


def validation_loss(config: Config, model):
    prepared = PreparedData.open(config.prepared_folder)
    shards = prepared.shards("validation")
    tokens = config.training.micro_batch_tokens
    held_out = HeldOut(shards, range(len(shards)), tokens, prepared.tokenizer())
    alone = Group(0, 1, 0, torch.device("cpu"))
    return held_out.loss(Objective(model, config.training.label_smoothing), alone)


@every_run
def test_checkpoints_of_every_kind_are_averaged_like_any_others(run_with, changes):
    _, run = run_with(*changes, "training.steps=10")
    trained = load_trained(run, "latest", 2, torch.device("cpu"))
    assert trained.steps == [5, 10]
    five, ten = (Checkpoint(run.checkpoints / f"step-{step:08d}").model() for step in (5, 10))
    for name, tensor in trained.model.state_dict().items():
        torch.testing.assert_close(tensor, (five[name] + ten[name]) / 2)


@every_run
@pytest.mark.cluster
def test_fp16_with_clipping_scales_and_resumes(run_with, changes):
    half = [*changes, "training.precision=fp16", "optimizer.clip_norm=0.5"]
    run_with(*half, "training.steps=4")
    _, run = run_with(*half, "training.steps=8")
    _, whole = run_with(*half, "training.steps=8", name="whole")
    assert losses(run) == losses(whole)
    assert sum(event.updated for event in events(whole, StepDone)) >= 5
