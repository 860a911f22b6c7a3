"""A small model as it is exported."""

import pytest
import torch

from dragoman.config import DecodingSettings, ModelSettings, TokenizerSettings
from dragoman.export.content import Content
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus", "Über öl, 3 Äpfel!"] * 5
SHAPE = ModelSettings(
    preset="transformer-tiny", width=16, heads=2, filter=32, encoder_layers=2, decoder_layers=1
)


@pytest.fixture(params=["bpe", "unigram"])
def content(request) -> Content:
    settings = TokenizerSettings(vocabulary=36, kind=request.param)
    tokenizer = learn_tokenizer(TEXT, settings)
    torch.manual_seed(3)
    model = Transformer(SHAPE, tokenizer.size).eval()
    return Content(
        name="small",
        source_language="en",
        target_language="de",
        model=SHAPE,
        weights=dict(model.state_dict()),
        tokenizer=tokenizer,
        decoding=DecodingSettings(beam=3),
        card="# small\n",
    )
