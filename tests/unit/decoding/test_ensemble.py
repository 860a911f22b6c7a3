import math

import pytest
import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import ModelSettings
from dragoman.decoding.ensemble import advance, attention, begin
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.model.transformer import Prefix, Transformer

START, END = 2, 3
SOURCES = [[5, 6, 7, END], [8, END]]


def model_of(seed, width=16, layers=1):
    torch.manual_seed(seed)
    settings = ModelSettings(
        preset="transformer-tiny", width=width, heads=2, filter=32, decoder_layers=layers
    )
    model = Transformer(settings, 20).eval()
    torch.nn.init.normal_(model.embedding.weight, std=0.7)
    return model


@torch.inference_mode()
def test_a_model_alone_is_itself_to_the_bit_and_several_have_their_mean_probability():
    models = [model_of(1), model_of(2, width=32), model_of(3, layers=2)]
    batch = collate_sources(SOURCES, 0)
    tokens = torch.tensor([START, START])
    alone = []
    for model in models:
        source = model.encode(batch.source_BS, batch.source_mask)
        hidden, _ = model.step(tokens, Prefix(), source)
        alone.append(hidden @ model.output_weight.T)
        (logits, _) = advance([model], tokens, begin([model], batch))
        assert torch.equal(logits, alone[-1])
    logits, _ = advance(models, tokens, begin(models, batch))
    expected = torch.stack([each.softmax(1) for each in alone]).mean(0)
    torch.testing.assert_close(logits.softmax(1), expected)
    torch.testing.assert_close(logits.exp(), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_beside_itself_translates_as_alone_and_two_as_neither_must(beam):
    first, second = model_of(1), model_of(2, width=32)
    batch = collate_sources(SOURCES, 0)

    def search(models):
        if beam == 1:
            return greedy_search(models, batch, START, END, 9, 0.6)
        return [found for (found,) in beam_search(models, batch, START, END, 9, beam, 0.6)]

    alone, twice = search([first]), search([first, first])
    assert [each.ids for each in twice] == [each.ids for each in alone]
    assert [each.score for each in twice] == pytest.approx([each.score for each in alone], rel=1e-3)
    together = search([first, second])
    for source, found in zip(SOURCES, together, strict=True):
        ids = [*found.ids, END][:9]
        total = 0.0
        for n, piece in enumerate(ids):
            target = torch.tensor([[START, *ids[:n]]])
            with torch.no_grad():
                each = [
                    (m(torch.tensor([source]), None, target)[0, -1] @ m.output_weight.T).softmax(0)
                    for m in (first, second)
                ]
            total += math.log((each[0][piece] + each[1][piece]).item() / 2)
        assert found.score == pytest.approx(total / len(ids) ** 0.6, rel=1e-3)


def test_attention_is_the_mean_over_models():
    models = [model_of(1), model_of(2, width=32)]
    batch = collate_sources(SOURCES, 0)
    target = torch.tensor([[START, 5, 6], [START, 7, 0]])
    found = attention(models, batch, target)
    assert found.shape == (2, 3, 4)
    torch.testing.assert_close(found.sum(2), torch.ones(2, 3))
    assert not found[1, :, 2:].any()  # padding of the second source
    apart = [attention([model], batch, target) for model in models]
    torch.testing.assert_close(found, sum(apart) / 2)
