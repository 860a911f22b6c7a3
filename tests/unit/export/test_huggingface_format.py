import json

import pytest
import torch
from safetensors.torch import load_file

from dragoman.errors import UserError
from dragoman.export.huggingface_format import renamed, write_huggingface


def test_every_weight_has_its_place_and_fused_ones_come_apart(content, tmp_path):
    write_huggingface(tmp_path, content)
    weights = load_file(tmp_path / "model.safetensors")
    ours = content.weights
    assert torch.equal(weights["model.shared.weight"], ours["embedding.weight"])
    assert torch.equal(weights["lm_head.weight"], ours["embedding.weight"])
    own = "model.encoder.layers.1.self_attn"
    fused = torch.cat([weights[f"{own}.{part}_proj.weight"] for part in "qkv"])
    assert torch.equal(fused, ours["encoder.1.self_attention.query_key_value.weight"])
    other = "model.decoder.layers.0.encoder_attn"
    fused = torch.cat([weights[f"{other}.{part}_proj.weight"] for part in "kv"])
    assert torch.equal(fused, ours["decoder.0.cross_attention.key_value.weight"])
    assert not weights[f"{own}.q_proj.bias"].any()
    assert torch.equal(
        weights["model.decoder.layers.0.fc1.bias"], ours["decoder.0.feed_forward.inner.bias"]
    )
    assert torch.equal(weights["model.encoder.layer_norm.weight"], ours["encoder_norm.weight"])
    # The embedding twice; biases of zero for each projection.
    biases = sum(weight.numel() for name, weight in weights.items() if "_proj.bias" in name)
    total = sum(weight.numel() for weight in weights.values())
    expected = sum(weight.numel() for weight in ours.values()) + ours["embedding.weight"].numel()
    assert total == expected + biases
    assert len(dict(renamed(ours, 16))) == len(weights)


def test_the_settings_are_those_of_the_model_and_the_recipe(content, tmp_path):
    write_huggingface(tmp_path, content)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["encoder_layers"], config["decoder_layers"], config["d_model"]) == (2, 1, 16)
    assert config["scale_embedding"]
    assert (config["pad_token_id"], config["decoder_start_token_id"]) == (0, 2)
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert (generation["num_beams"], generation["length_penalty"]) == (3, 0.6)
    assert generation["early_stopping"]


def test_a_tokenizer_whose_padding_would_shift_positions_is_refused(content, tmp_path):
    content.tokenizer.padding = 5
    with pytest.raises(UserError, match=r"5 instead of 0"):
        write_huggingface(tmp_path, content)
    assert list(tmp_path.iterdir()) == []
