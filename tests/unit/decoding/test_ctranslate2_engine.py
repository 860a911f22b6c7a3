import os
import sys

import ctranslate2
import pytest
import torch
from digits_language import ENGLISH

from dragoman.config import DecodingSettings, ModelSettings, TokenizerSettings
from dragoman.decoding.ctranslate2_engine import (
    BATCHES_AHEAD,
    CTranslate2Engine,
    _threads,
    check_precision,
)
from dragoman.decoding.ctranslate2_model import write_model
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.errors import UserError
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import learn_tokenizer

CPU = torch.device("cpu")
SHAPE = ModelSettings(
    preset="transformer-tiny", width=16, heads=2, filter=32, encoder_layers=1, decoder_layers=1
)
TEXT = [" ".join(ENGLISH[(a + b * a) % 10] for b in range(a % 6 + 1)) for a in range(40)]


def engines(folder, seed, layers=1):
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
    torch.manual_seed(seed)
    shape = SHAPE.model_copy(update={"decoder_layers": layers})
    model = Transformer(shape, tokenizer.size).eval()
    # Sharper than at the start of training; some translations end early, some are cut off.
    torch.nn.init.normal_(model.embedding.weight, std=0.6)
    write_model(folder, shape, model.state_dict(), tokenizer)
    return (
        TorchEngine(model, tokenizer, CPU),
        CTranslate2Engine(folder, tokenizer, "float32", CPU),
        tokenizer,
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_hypotheses_are_those_of_the_torch_engine(tmp_path, seed):
    ours, theirs, tokenizer = engines(tmp_path, seed)
    encoded = [ids for ids in tokenizer.encode(TEXT) if len(ids) <= 16]
    batches = [encoded[:10], encoded[10:11], encoded[11:]]
    for beam in (1, 4):
        for penalty in (0.0, 0.6, 1.5):
            settings = DecodingSettings(beam=beam, length_penalty=penalty, max_length_factor=0.5)
            expected = [found for batch in ours.search(batches, settings, beam) for found in batch]
            found = [
                found
                for batch in theirs.search(batches, settings, beam, scored=True)
                for found in batch
            ]
            assert len(found) == len(encoded)
            assert [len(each) for each in found] == [len(each) for each in expected]
            for one, other in zip(found, expected, strict=True):
                assert one[0].ids == other[0].ids
                assert [h.score for h in one] == pytest.approx(
                    [h.score for h in other], abs=1e-4, rel=1e-4
                )


@pytest.mark.parametrize("seed", range(3))
def test_with_prefixes_they_are_those_of_the_torch_engine_too(tmp_path, seed):
    ours, theirs, tokenizer = engines(tmp_path, seed)
    encoded = [ids for ids in tokenizer.encode(TEXT) if len(ids) <= 16]
    prefixes = [ids[:-1][: 1 + n % 5] for n, ids in enumerate(reversed(encoded))]
    batches, given = [encoded[:10], encoded[10:]], [prefixes[:10], prefixes[10:]]
    for beam in (1, 4):
        for penalty in (0.0, 0.6):
            settings = DecodingSettings(beam=beam, length_penalty=penalty, max_length_factor=0.5)
            options = settings, beam, True, given
            expected = [found for batch in ours.search(batches, *options) for found in batch]
            found = [found for batch in theirs.search(batches, *options) for found in batch]
            for prefix, one, other in zip(prefixes, found, expected, strict=True):
                assert one[0].ids[: len(prefix)] == prefix
                assert one[0].ids == other[0].ids
                assert [h.score for h in one] == pytest.approx(
                    [h.score for h in other], abs=1e-4, rel=1e-4
                )


@pytest.mark.parametrize("layers", [1, 3])
def test_attention_is_that_of_the_torch_engine(tmp_path, layers):
    ours, theirs, tokenizer = engines(tmp_path, 1, layers)
    encoded = [ids for ids in tokenizer.encode(TEXT) if len(ids) <= 16]
    for beam, prefixes in ((1, None), (4, None), (4, [[ids[:-1][:2] for ids in encoded]])):
        settings = DecodingSettings(beam=beam, max_length_factor=0.5)
        options = settings, beam, True, prefixes, True
        (expected,), (found,) = ours.search([encoded], *options), theirs.search([encoded], *options)
        for ids, one, other in zip(encoded, found, expected, strict=True):
            assert [h.ids for h in one] == [h.ids for h in other]
            for mine, yours in zip(one, other, strict=True):
                assert mine.attention.shape == (len(mine.ids), len(ids) - 1)
                assert mine.attention == pytest.approx(yours.attention, abs=1e-4)


def test_a_precision_that_the_processor_lacks_is_refused_with_those_it_has(monkeypatch):
    monkeypatch.setattr("ctranslate2.get_supported_compute_types", lambda *_: {"float32", "int8"})
    check_precision("int8", CPU)
    with pytest.raises(UserError, match=r"int16.*float32, int8"):
        check_precision("int16", CPU)


def test_it_has_as_many_threads_as_torch_also_where_that_is_not_imported(monkeypatch):
    assert _threads() == torch.get_num_threads()
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert _threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert 1 <= _threads() <= os.cpu_count()
    monkeypatch.setattr("dragoman.decoding.ctranslate2_engine.usable_cores", lambda: 5)
    assert _threads() == 5


@pytest.mark.parametrize(
    ("cores", "replicas", "threads_of_each"), [(1, 1, 1), (2, 2, 1), (8, 8, 1), (16, 8, 2)]
)
def test_each_core_gets_a_replica_of_one_thread_up_to_eight(
    tmp_path, monkeypatch, cores, replicas, threads_of_each
):
    opened = {}

    class Opened(ctranslate2.Translator):
        def __init__(self, folder, **options):
            opened.update(options)
            super().__init__(folder, **options)

    monkeypatch.setattr(ctranslate2, "Translator", Opened)
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    _, engine, _ = engines(tmp_path, 0)
    assert engine.replicas == engine._translator.num_translators == replicas
    assert opened["intra_threads"] == threads_of_each


@pytest.mark.parametrize("cores", [1, 3])
def test_every_replica_has_batches_waiting_and_no_more_are_read_than_that(
    tmp_path, monkeypatch, cores
):
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    _, engine, tokenizer = engines(tmp_path, 0)
    read = 0

    def batches():
        nonlocal read
        for ids in tokenizer.encode(TEXT):
            read += 1
            yield [ids]

    found = engine.search(batches(), DecodingSettings(beam=1, max_length_factor=0.5))
    next(found)
    assert read == BATCHES_AHEAD * cores + 1
    assert 1 + sum(1 for _ in found) == read == len(TEXT)
