import re
import threading

import pytest
import torch

from dragoman.config import DecodingSettings, ModelSettings, TokenizerSettings
from dragoman.decoding import torch_engine
from dragoman.decoding.constraints import pattern_of
from dragoman.decoding.engine import most_pieces
from dragoman.decoding.torch_engine import TorchEngine, map_in_threads
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5


def test_batches_come_back_in_order_and_the_model_goes_on_training():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    torch.manual_seed(1)
    settings = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32, dropout=0.9)
    model = Transformer(settings, tokenizer.size)
    engine = TorchEngine(model, tokenizer, torch.device("cpu"))
    encoded = tokenizer.encode(["the cat", "the old house sees", "die"])
    for beam, wanted in ((1, 1), (3, 2)):
        decoding = DecodingSettings(beam=beam)
        apart = [found for ids in encoded for (found,) in engine.search([[ids]], decoding, wanted)]
        (together,) = engine.search([encoded], decoding, wanted)
        # Equal in spite of dropout, which acts in training alone.
        assert [[h.ids for h in found] for found in together] == [
            [h.ids for h in found] for found in apart
        ]
        assert all(len(found) == wanted for found in together)
        assert all(len(h.ids) <= most_pieces(8, decoding) for found in together for h in found)
    assert model.training


def test_batches_are_searched_beside_each_other_with_the_same_result(monkeypatch):
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    torch.manual_seed(1)
    settings = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32, dropout=0.9)
    engine = TorchEngine(Transformer(settings, tokenizer.size), tokenizer, torch.device("cpu"))
    batches = [[ids] for ids in tokenizer.encode([*TEXT, "the house", "das Haus sieht", "die"])]
    monkeypatch.setattr(torch_engine, "MOST_REPLICAS", 1)
    alone = list(engine.search(batches, DecodingSettings(beam=3), attentive=True))
    monkeypatch.setattr(torch_engine, "MOST_REPLICAS", 3)
    before = torch.get_num_threads()
    torch.set_num_threads(6)
    try:
        assert engine.replicas == 3
        together = list(engine.search(batches, DecodingSettings(beam=3), attentive=True))
        assert torch.get_num_threads() == 6
    finally:
        torch.set_num_threads(before)
    assert [[h.ids for (h,) in found] for found in together] == [
        [h.ids for (h,) in found] for found in alone
    ]


def test_threads_share_the_work_and_a_single_job_has_all_of_them():
    barrier = threading.Barrier(2, timeout=60)

    def meet(number):
        if number < 2:
            barrier.wait()  # both are at work at once, or it breaks
        return number, torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert list(map_in_threads(meet, range(20), 2)) == [(n, 1) for n in range(20)]
        assert list(map_in_threads(meet, [7], 2)) == [(7, 2)]
        some = map_in_threads(meet, iter(range(2, 2000)), 2)
        assert next(some) == (2, 1)
        some.close()  # what was not wanted any more is not done, and the threads are back
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_error_of_one_batch_is_raised_in_its_turn():
    def work(number):
        return 1 / (3 - number)

    results = map_in_threads(work, range(10), 2)
    assert [next(results) for _ in range(3)] == [1 / 3, 1 / 2, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_several_models_search_together_and_all_go_on_training():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    models = []
    for seed, width in ((1, 16), (2, 32)):
        torch.manual_seed(seed)
        settings = ModelSettings(preset="transformer-tiny", width=width, heads=2, filter=32)
        models.append(Transformer(settings, tokenizer.size))
    device = torch.device("cpu")
    together = TorchEngine(models[0], tokenizer, device, (models[1],))
    assert "2 models" in together.description
    encoded = tokenizer.encode(["the cat", "the old house sees"])
    options = DecodingSettings(beam=3), 2, True, None, True
    (found,) = together.search([encoded], *options)
    assert all(model.training for model in models)
    alone = [next(TorchEngine(m, tokenizer, device).search([encoded], *options)) for m in models]
    scores = [[of_one[0][0].score for of_one in each] for each in ([found], *([a] for a in alone))]
    assert scores[0] not in scores[1:]
    for ids, of_one in zip(encoded, found, strict=True):
        for each in of_one:
            assert each.attention.shape == (len(each.ids), len(ids) - 1)


def test_terms_are_found_by_the_words_of_the_tokenizer():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    torch.manual_seed(1)
    settings = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32)
    engine = TorchEngine(Transformer(settings, tokenizer.size), tokenizer, torch.device("cpu"))
    encoded = tokenizer.encode(["the cat", "the old house sees"])
    patterns = [
        [pattern_of("Haus", tokenizer)],
        [pattern_of(t, tokenizer) for t in ("die", "sieht")],
    ]
    (found,) = engine.search_with_terms(
        [encoded], DecodingSettings(beam=2), 2, [[[], []]], [patterns], attentive=True
    )
    texts = [tokenizer.decode([each.ids for each in of_one]) for of_one in found]
    assert all(re.search(r"\bHaus\b", text) for text in texts[0])
    assert all({"die", "sieht"} <= set(re.findall(r"\w+", text)) for text in texts[1])
    assert found[0][0].attention.shape == (len(found[0][0].ids), len(encoded[0]) - 1)
