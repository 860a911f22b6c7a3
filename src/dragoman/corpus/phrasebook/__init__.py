"""The built-in English-German corpus: a grammar that makes any number of sentence pairs, offline.

In: a split, a count and a seed. Out: distinct (English, German) pairs, the same on every machine.

One abstract meaning is drawn for each pair and realized by both languages, so that the sides say
the same; every English sentence has exactly one German side in the whole language. A sentence
belongs to a split by its combination of content words, whatever the seed: test sentences put words
together as no training sentence does.

`words` are the parts of speech; `nouns`, `verbs`, `adverbials` and `numbers` the lexicon;
`meaning` is what a sentence can say; `phrases` and `clauses` draw its parts, `statements`,
`questions`, `compounds` and `relatives` the whole, each construction as often as `constructions`
says; `english` and `german` realize it.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import accumulate
from random import Random
from typing import Literal, get_args

from dragoman.corpus.phrasebook import english, german
from dragoman.corpus.phrasebook.constructions import CONSTRUCTIONS
from dragoman.corpus.phrasebook.meaning import Meaning, combination
from dragoman.errors import UserError

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

MAX_PAIRS: dict[Split, int] = {"train": 500_000, "validation": 10_000, "test": 10_000}
"""The most that can be asked for. Each split holds several times as many, but the further one
draws, the more are seen again."""

_HELD_OUT_PERCENT = 2  # for validation, and as much for test


def sentence_pairs(split: Split, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """`count` distinct (English, German) pairs of a split, lazily; another seed, other pairs.

    Fewer pairs of the same seed are a prefix of more. Raises `UserError` at once if the count is
    more than `MAX_PAIRS` has for the split.
    """
    if split not in SPLITS:
        raise UserError(f"The phrasebook has no split {split!r}; choose one of {SPLITS}.")
    if not 0 <= count <= MAX_PAIRS[split]:
        raise UserError(
            f"The phrasebook gives 0 to {MAX_PAIRS[split]:,} pairs of the {split} split, "
            f"not {count:,}; ask for fewer."
        )
    return _distinct_pairs(split, count, Random(f"{split}-{seed}"))


def _distinct_pairs(split: Split, count: int, rng: Random) -> Iterator[tuple[str, str]]:
    constructions = list(CONSTRUCTIONS)
    weights = list(accumulate(CONSTRUCTIONS.values()))
    seen: set[str] = set()
    while len(seen) < count:
        (construct,) = rng.choices(constructions, cum_weights=weights)
        meaning = construct(rng)
        if split_of(meaning) != split:
            continue
        source = english.sentence(meaning)
        if source not in seen:
            seen.add(source)
            yield source, german.sentence(meaning)


def split_of(meaning: Meaning) -> Split:
    """The split that a meaning's combination of content words belongs to, whatever the seed."""
    digest = blake2b(combination(meaning).encode(), digest_size=4).digest()
    percentile = int.from_bytes(digest) % 100
    if percentile < _HELD_OUT_PERCENT:
        return "test"
    return "validation" if percentile < 2 * _HELD_OUT_PERCENT else "train"
