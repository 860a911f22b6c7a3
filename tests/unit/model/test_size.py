import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelSettings
from dragoman.model.size import count_parameters, size_of, training_flops_per_token
from dragoman.model.transformer import Transformer


def test_the_base_model_is_counted_without_building_it():
    assert count_parameters(ModelSettings(preset="transformer-base"), 32_768) == 60_880_896


def test_flops_agree_with_what_torch_counts():
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
