import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelSettings, OptimizerSettings
from dragoman.distributed import gemm
from dragoman.model.size import (
    count_hidden_matrices,
    count_parameters,
    size_of,
    training_flops_per_token,
)
from dragoman.model.transformer import Transformer


def test_the_base_model_is_counted_without_building_it():
    assert count_parameters(ModelSettings(preset="transformer-base"), 32_768) == 60_880_896


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("transformer-tiny-deep-shallow", 2_022_016),
        ("transformer-deep-shallow", 58_783_232),
    ],
)
def test_deep_encoders_have_about_the_parameters_of_their_twins(preset, parameters):
    vocabulary = 6000 if "tiny" in preset else 32_768
    deep = count_parameters(ModelSettings(preset=preset), vocabulary)
    assert deep == parameters
    twin = "transformer-tiny" if "tiny" in preset else "transformer-base"
    of_twin = count_parameters(ModelSettings(preset=twin), vocabulary)
    assert deep == pytest.approx(of_twin, rel=0.05)


def test_flops_agree_with_what_torch_counts(monkeypatch):
    monkeypatch.setattr(gemm, "has_faster_onednn", lambda: False)  # which the counter leaves out
    settings = ModelSettings(preset="transformer-small", dropout=0.0)
    model = Transformer(settings, 1000).eval()
    length, sentences = 20, 4
    torch.manual_seed(1)
    tokens = torch.randint(4, 1000, (sentences, length))
    # The counter knows the plain products of attention, not the CPU's fused kernel.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        hidden = model(tokens, None, tokens)
        _ = hidden @ model.output_weight.T
    per_token = 3 * counter.get_total_flops() / (sentences * length)
    assert training_flops_per_token(settings, 1000, length) == pytest.approx(per_token, rel=0.001)


def test_state_is_weights_gradients_and_two_moments():
    size = size_of(ModelSettings(preset="transformer-base"), 32_768)
    assert size.state_bytes == 16 * 60_880_896
    assert size.checkpoint_bytes == 12 * 60_880_896


@pytest.mark.parametrize(
    ("settings", "state", "checkpoint"),
    [
        (OptimizerSettings(average_decay=0.999), 20, 16),
        (OptimizerSettings(kind="schedule-free"), 20, 16),
    ],
)
def test_an_average_is_one_more_set_of_weights(settings, state, checkpoint):
    size = size_of(ModelSettings(preset="transformer-base"), 32_768, settings)
    assert size.state_bytes == state * 60_880_896
    assert size.checkpoint_bytes == checkpoint * 60_880_896


def test_muon_keeps_one_moment_of_the_matrices_of_the_layers():
    model = ModelSettings(preset="transformer-tiny", encoder_layers=3)
    with torch.device("meta"):
        built = Transformer(model, 500)
    matrices = sum(
        parameter.numel()
        for name, parameter in built.named_parameters()
        if parameter.ndim == 2 and not name.startswith("embedding")
    )
    assert count_hidden_matrices(model) == matrices
    usual, muon = (
        size_of(model, 500, OptimizerSettings(kind=kind)).optimizer_bytes
        for kind in ("adamw", "muon")
    )
    assert usual - muon == 4 * matrices
