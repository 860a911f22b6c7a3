"""Text in, text out: sentences are tokenized, batched by length, searched and put back in order."""

from collections.abc import Callable, Sequence

import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import DecodingSettings
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import Ids, Tokenizer


def translate(
    model: Transformer,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    settings: DecodingSettings,
    device: torch.device,
    done: Callable[[int], None] = lambda count: None,
) -> list[str]:
    """Translate in evaluation mode; `done` hears of each batch. An empty sentence stays empty."""
    encoded = tokenizer.encode([sentence.strip() for sentence in sentences])
    translations = [""] * len(sentences)
    was_training = model.training
    model.eval()
    try:
        for numbers in _batches(encoded, settings.batch_tokens, settings.beam):
            outputs = _search(model, tokenizer, [encoded[n] for n in numbers], settings, device)
            for number, text in zip(numbers, tokenizer.decode(outputs), strict=True):
                translations[number] = text
            done(len(numbers))
    finally:
        model.train(was_training)
    return translations


def _batches(encoded: Sequence[Ids], batch_tokens: int, beam: int) -> list[list[int]]:
    """Numbers of sentences of like length together, longest first, so that memory fails early.

    A batch holds `batch_tokens` padded source tokens for greedy search; a beam of four takes
    four rows a sentence.
    """
    with_text = [number for number, ids in enumerate(encoded) if len(ids) > 1]
    order = sorted(with_text, key=lambda number: -len(encoded[number]))
    batches: list[list[int]] = []
    while order:
        size = max(1, batch_tokens // (beam * len(encoded[order[0]])))
        batches.append(order[:size])
        order = order[size:]
    return batches


def _search(
    model: Transformer,
    tokenizer: Tokenizer,
    encoded: Sequence[Ids],
    settings: DecodingSettings,
    device: torch.device,
) -> list[Ids]:
    batch = collate_sources(encoded, tokenizer.padding).to(device)
    max_lengths = [int(settings.max_length_factor * len(ids)) + 10 for ids in encoded]
    if settings.beam == 1:
        return greedy_search(model, batch, tokenizer.start, tokenizer.end, max_lengths)
    return beam_search(
        model,
        batch,
        tokenizer.start,
        tokenizer.end,
        max_lengths,
        settings.beam,
        settings.length_penalty,
    )
