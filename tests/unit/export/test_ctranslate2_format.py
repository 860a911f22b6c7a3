import ctranslate2
import sentencepiece
import torch

from dragoman.decoding.torch_engine import TorchEngine
from dragoman.export.ctranslate2_format import write_ctranslate2
from dragoman.model.transformer import Transformer


def test_the_plain_package_translates_as_our_engine_does(content, tmp_path):
    write_ctranslate2(tmp_path, content, "float32")
    model = Transformer(content.model, content.tokenizer.size).eval()
    model.load_state_dict(content.weights)
    engine = TorchEngine(model, content.tokenizer, torch.device("cpu"))
    texts = ["the old cat", "the house sees", "die Katze"]
    encoded = content.tokenizer.encode(texts)
    (expected,) = engine.search([encoded], content.decoding)

    pieces = sentencepiece.SentencePieceProcessor(str(tmp_path / "tokenizer.model"))
    translator = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    results = translator.translate_batch(
        pieces.encode(texts, out_type=str),
        beam_size=3,
        length_penalty=0.6,
        return_end_token=True,
        min_decoding_length=0,
        max_decoding_length=34,
    )
    found = [pieces.decode(result.hypotheses[0]) for result in results]
    assert found == content.tokenizer.decode([hypotheses[0].ids for hypotheses in expected])
