import json

import torch
from safetensors.torch import load_file

from dragoman.export.safetensors_format import write_safetensors
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import Tokenizer


def test_the_model_can_be_built_from_the_folder_alone(content, tmp_path):
    write_safetensors(tmp_path, content)
    config = json.loads((tmp_path / "config.json").read_text())
    assert Tokenizer.load(tmp_path / "tokenizer.model").size == config["vocabulary"]
    assert (config["width"], config["encoder_layers"], config["decoder_layers"]) == (16, 2, 1)
    assert (config["padding_id"], config["start_id"], config["end_id"]) == (0, 2, 3)
    model = Transformer(content.model, config["vocabulary"])
    weights = load_file(tmp_path / "model.safetensors")
    model.load_state_dict(weights)
    assert all(torch.equal(weights[name], weight) for name, weight in content.weights.items())
