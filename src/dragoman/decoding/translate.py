"""Text in, text out: sentences are tokenized, batched by length, searched and put back in order.

A line that is longer than those the model has learned from is translated in pieces.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

from dragoman.config import DecodingSettings
from dragoman.decoding.constraints import Terms
from dragoman.decoding.engine import Engine, Hypothesis, most_pieces
from dragoman.decoding.parts import parts_of
from dragoman.decoding.rendering import Part, copied, plain_text, render
from dragoman.decoding.splitting import Piece, join, split
from dragoman.decoding.translation import Rendered, Translation, distinct, joined
from dragoman.tokenizer import Ids, Tokenizer

if TYPE_CHECKING:
    from dragoman.decoding.torch_engine import TorchEngine

logger = logging.getLogger(__name__)

LONGEST_TOKENS = 200
BATCHES_PER_REPLICA = 4
"""At least: with one each, all would wait for the one with the longest sentences."""
LONGEST_TOKEN_CHARACTERS = 16
"""SentencePiece learns no longer pieces, so a text's characters bound its tokens from below."""


class Wanted(NamedTuple):
    """What is asked for beside the best text of each sentence."""

    candidates: int = 1
    is_aligned: bool = False
    is_scored: bool = False
    prefixes: Sequence[str] = ()
    """For each sentence what its translation begins with; empty: none."""
    terms: Terms | None = None
    torch_engine: "Callable[[], TorchEngine] | None" = None
    """Opens the engine that searches translations with terms."""


TEXT_ALONE = Wanted()


def translate(
    engine: Engine,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    settings: DecodingSettings,
    done: Callable[[int], None] = lambda count: None,
    longest: int = LONGEST_TOKENS,
    wanted: Wanted = TEXT_ALONE,
) -> list[str]:
    """Translates sentences, one for one; calls `done` after each batch. Empty ones stay empty.

    A sentence with more tokens than `longest`, its end included, is translated in pieces.
    """
    # Without the rest of a translation, which takes as long as tokenizing the sentence.
    wanted = wanted._replace(candidates=1, is_aligned=False, is_scored=False)
    texts = [sentence.strip() for sentence in sentences]
    lines, candidates = _candidates(engine, tokenizer, texts, settings, done, longest, wanted)
    in_order = (of_part[0].text for of_part in candidates)
    translated = [join(line, list(islice(in_order, len(line)))) for line in lines]
    if wanted.terms:
        _report_lost_terms(texts, translated, wanted.terms)
    return translated


def translations(
    engine: Engine,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    settings: DecodingSettings,
    done: Callable[[int], None] = lambda count: None,
    longest: int = LONGEST_TOKENS,
    wanted: Wanted = TEXT_ALONE,
) -> list[Translation]:
    """Translates as `translate` does, and returns all that is wanted.

    A beam that is narrower than the number of candidates is widened to it.
    """
    texts = [sentence.strip() for sentence in sentences]
    lines, candidates = _candidates(engine, tokenizer, texts, settings, done, longest, wanted)
    in_order = iter(candidates)
    translated = [
        joined(text, line, list(islice(in_order, len(line))), wanted.candidates)
        for text, line in zip(texts, lines, strict=True)
    ]
    if wanted.terms:
        _report_lost_terms(texts, [each.text for each in translated], wanted.terms)
    return translated


def _candidates(
    engine: Engine,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    settings: DecodingSettings,
    done: Callable[[int], None],
    longest: int,
    wanted: Wanted,
) -> tuple[list[list[Piece]], list[list[Rendered]]]:
    """Returns the pieces of each line, and for all pieces of all lines their candidates."""
    settings = settings.model_copy(update={"beam": max(settings.beam, wanted.candidates)})
    lines, encoded = _encode(texts, tokenizer, longest)
    parts = parts_of(
        lines, encoded, tokenizer, wanted.prefixes, wanted.terms, is_aligned=wanted.is_aligned
    )
    candidates: list[list[Rendered]] = [[Rendered("")]] * len(encoded)
    for number, part in parts.items():
        candidates[number] = [copied(part)]
    for numbers, found in _searched(engine, encoded, parts, settings, wanted):
        rendered = _rendered(numbers, found, parts, tokenizer)
        for number, of_part in zip(numbers, rendered, strict=True):
            is_one = len(of_part) == 1
            candidates[number] = of_part if is_one else distinct(of_part, wanted.candidates)
        done(len(numbers))
    return lines, candidates


def _searched(
    engine: Engine,
    encoded: Sequence[Ids],
    parts: dict[int, Part],
    settings: DecodingSettings,
    wanted: Wanted,
) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
    """Yields batches of numbers of parts and their hypotheses.

    A batch holds parts that need the same: CTranslate2 treats the first piece of all sentences
    of a batch in another way where one of them has a prefix.
    """
    hypotheses = 1 if wanted.candidates == 1 else settings.beam
    lengths_of_ordinary = {
        n: len(ids) for n, ids in enumerate(encoded) if len(ids) > 1 and n not in parts
    }
    groups = {(False, False, False): lengths_of_ordinary}
    for number, part in parts.items():
        if len(encoded[number]) > 1:
            key = bool(part.patterns), part.is_attentive, bool(part.prefix_ids)
            groups.setdefault(key, {})[number] = _longest_of(encoded[number], part)
    for (has_terms, attentive, has_prefixes), lengths in groups.items():
        batches = length_batches(lengths, settings, 1 if has_terms else engine.replicas)
        sources = ([encoded[n] for n in batch] for batch in batches)
        prefixes = ([[*parts[n].prefix_ids] for n in batch] for batch in batches)
        if has_terms and wanted.torch_engine:
            patterns = ([parts[n].patterns for n in batch] for batch in batches)
            found = wanted.torch_engine().search_with_terms(
                sources, settings, hypotheses, prefixes, patterns, attentive
            )
        else:
            given = prefixes if has_prefixes else None
            found = engine.search(sources, settings, hypotheses, wanted.is_scored, given, attentive)
        yield from zip(batches, found, strict=True)


def _longest_of(ids: Ids, part: Part) -> int:
    """Returns the length that limits a translation: of the source, or of what it must contain."""
    return max(len(ids), len(part.prefix_ids) + sum(map(len, part.patterns)))


def _rendered(
    numbers: Sequence[int],
    found: Sequence[Sequence[Hypothesis]],
    parts: dict[int, Part],
    tokenizer: Tokenizer,
) -> Iterator[list[Rendered]]:
    ordinary = [
        hypothesis.ids
        for number, hypotheses in zip(numbers, found, strict=True)
        if number not in parts
        for hypothesis in hypotheses
    ]
    texts = iter(tokenizer.decode(ordinary))
    for number, hypotheses in zip(numbers, found, strict=True):
        if number in parts:
            yield [render(each, parts[number], tokenizer) for each in hypotheses]
            continue
        of_one = []
        for each in hypotheses:
            text = next(texts)
            if tokenizer.unknown in each.ids:
                text = plain_text(each.ids, tokenizer)
            of_one.append(Rendered(text, each.score))
        yield of_one


def _report_lost_terms(texts: Sequence[str], translated: Sequence[str], terms: Terms) -> None:
    for text, translation in zip(texts, translated, strict=True):
        for target in terms.glossary.terms_in(text):
            if terms.written[target] not in translation and target not in translation:
                logger.warning(
                    f"{text!r:.60}: the translation lacks {target!r} of the glossary, since it "
                    "would be too long with it, or the term was cut in two with its line"
                )


def _encode(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int
) -> tuple[list[list[Piece]], list[Ids]]:
    """Returns the pieces of each sentence, itself if it is short enough, and the ids of them all.

    Nothing is encoded twice but sentences that are too long.
    """
    short = [len(text) <= longest * LONGEST_TOKEN_CHARACTERS for text in texts]
    whole = iter(tokenizer.encode(list(compress(texts, short))))
    lines: list[list[Piece]] = []
    encoded: list[Ids] = []

    def tokens(parts: Sequence[str]) -> list[int]:
        return [len(ids) - 1 for ids in tokenizer.encode(parts)]

    for text, is_short in zip(texts, short, strict=True):
        ids = next(whole) if is_short else []
        if is_short and len(ids) <= longest:
            lines.append([Piece(text)])
            encoded.append(ids)
        else:
            lines.append(split(text, max(1, longest - 1), tokens))
            encoded += tokenizer.encode([piece.text for piece in lines[-1]])
    return lines, encoded


def length_batches(
    lengths: dict[int, int], settings: DecodingSettings, replicas: int = 1
) -> list[list[int]]:
    """Returns batches of numbers of sentences of similar length, longest first to fail early.

    A batch holds `batch_tokens` padded source tokens for greedy search; a beam of four takes
    four rows per sentence. All sentences of a batch may become equally long. Few sentences are
    shared out evenly over the replicas.
    """
    order = sorted(lengths, key=lambda number: -lengths[number])
    share = len(order) if replicas == 1 else -(-len(order) // (BATCHES_PER_REPLICA * replicas))
    batches: list[list[int]] = []
    size, limit = 0, 0
    for number in order:
        length = lengths[number]
        if not batches or len(batches[-1]) == size or most_pieces(length, settings) != limit:
            size = min(share, max(1, settings.batch_tokens // (settings.beam * length)))
            limit = most_pieces(length, settings)
            batches.append([])
        batches[-1].append(number)
    return batches
