import json

import ctranslate2
import pytest
import sentencepiece
import torch

from dragoman.config import ModelSettings, TokenizerSettings
from dragoman.decoding.ctranslate2_model import MODEL_FILES, write_model
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5
SHAPE = ModelSettings(
    preset="transformer-tiny", width=16, heads=2, filter=32, encoder_layers=2, decoder_layers=1
)


def written(folder, precision="float32"):
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    torch.manual_seed(3)
    model = Transformer(SHAPE, tokenizer.size).eval()
    folder.mkdir()
    write_model(folder, SHAPE, model.state_dict(), tokenizer, precision)
    return model, tokenizer


def test_the_plain_package_gives_the_log_probabilities_of_the_model(tmp_path):
    """Forced decoding: positions, scale, norms, heads and the tied output must all be right."""
    model, tokenizer = written(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == set(MODEL_FILES)
    source, target = tokenizer.encode(["the old house sees the cat", "die alte Katze"])
    with torch.no_grad():
        hidden = model(
            torch.tensor([source]), None, torch.tensor([[tokenizer.start, *target[:-1]]])
        )
        log_probs = (hidden[0] @ model.output_weight.T).log_softmax(1)
    expected = [log_probs[row, piece].item() for row, piece in enumerate(target)]

    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    translator = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    (scored,) = translator.score_batch(
        [pieces.encode("the old house sees the cat", out_type=str)],
        [pieces.encode("die alte Katze", out_type=str)],
    )
    assert scored.tokens[-1] == "</s>"
    assert scored.log_probs == pytest.approx(expected, abs=1e-4)


def test_the_embedding_is_stored_once_and_integers_take_a_quarter(tmp_path):
    written(tmp_path / "float")
    written(tmp_path / "integers", "int8")
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("float", "integers")]
    model = Transformer(SHAPE, 40)
    weights = sum(weight.numel() * 4 for weight in model.parameters())
    assert weights < sizes[0] < weights + 20_000
    assert sizes[1] < 0.6 * sizes[0]
    config = json.loads((tmp_path / "float" / "config.json").read_text())
    assert config["add_source_eos"]
    assert config["decoder_start_token"] == "<s>"
