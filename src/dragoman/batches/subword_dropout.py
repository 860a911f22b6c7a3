"""BPE-dropout: words of a step in other pieces than usual, as a function of seed, step and place.

The ids of sentences come in; ids of the same text, in more pieces, go out. Words are looked up in
a memory of those seen before, so that merges are only computed for what is new. The memory has no
influence on what comes out. Without torch.
"""

import hashlib
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, compress, pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.batches.merges import DRAWS, SPACE, Merges
from dragoman.shards.files import PairIds, Shards

Ids = npt.NDArray[np.int32]
Sequences = Sequence[Sequence[int] | npt.NDArray[np.integer]]
Side = Literal["source", "target"]

LONGEST_WORD = 8
"""Most pieces of a word; what is longer, or written without spaces, is taken for several words."""
MOST_REMEMBERED = 250_000
"""Words and segmentations, some hundred bytes each."""
SAMPLED_PAIRS = 250
"""From which the growth of sentences is estimated."""


class SubwordDropout:
    """Draws other pieces for the words of sentences; `share` is that of the dropped merges."""

    def __init__(self, merges: Merges, share: float, seed: int) -> None:
        self._share, self._seed = share, seed
        self._words = _Words(merges, share)
        is_normal = np.array(merges.is_normal)
        self._is_special = ~is_normal
        begins = np.array([piece.startswith(SPACE) for piece in merges.pieces])
        self._begins_word = begins | self._is_special

    def resegment(
        self, sequences: Sequences, widest: int, step: int, micro_batch: int, side: Side
    ) -> list[Ids]:
        """Returns the sequences of one side of a micro-batch in other pieces, of the same text.

        None gets longer than `widest`, unless it was before: some of its words, chosen at random,
        keep their pieces instead.
        """
        lengths = np.array([len(sequence) for sequence in sequences])
        ids = np.concatenate(sequences).astype(np.int32)
        row_begins = np.cumsum(lengths) - lengths
        begins = self._word_begins(ids, row_begins)
        bounds = np.append(begins, len(ids))
        raw = ids.tobytes()
        keys = [raw[begin:end] for begin, end in pairwise((bounds * ids.itemsize).tolist())]
        words = list(map(self._words.__getitem__, keys))
        draws = _draws(self._seed, step, micro_batch, side, len(words))
        limits = np.fromiter((word.unchanged_below for word in words), np.uint64, len(words))
        changed = np.flatnonzero(draws >= limits)
        drawn = [self._words.segmentation(words[number], int(draws[number])) for number in changed]

        sizes = np.diff(bounds)
        new_sizes = sizes.copy()
        new_sizes[changed] = [len(pieces) for pieces in drawn]
        row_bounds = np.append(np.searchsorted(begins, row_begins), len(words))
        _shorten(new_sizes, sizes, draws, row_bounds, widest)
        is_kept = new_sizes[changed] == [len(pieces) for pieces in drawn]
        changed = changed[is_kept]
        pieces = chain.from_iterable(compress(drawn, is_kept))
        together = _put_together(ids, sizes, new_sizes, changed, pieces)
        return np.split(together, np.cumsum(np.add.reduceat(new_sizes, row_bounds[:-1]))[:-1])

    def _word_begins(self, ids: Ids, row_begins: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Returns where words begin: at spaces, around special pieces, and in long words."""
        is_begin: npt.NDArray[np.bool_] = self._begins_word[ids]
        is_begin[1:] |= self._is_special[ids[:-1]]
        is_begin[row_begins] = True
        places = np.arange(len(ids))
        in_word = places - np.maximum.accumulate(np.where(is_begin, places, 0))
        return np.flatnonzero(in_word % LONGEST_WORD == 0)


def widest(expected: int) -> int:
    """Returns the most pieces of a sentence where the longest is expected to have so many.

    Lengths scatter by a sixth, and all sentences are padded to the longest. With room for a tenth
    padding is 14 % on Multi30k instead of 29 %, and words keep 8 % of the merges that they would
    have lost (share 0.1, 2026-11).
    """
    return -(-expected * 11 // 10)


class Growth(NamedTuple):
    """How many pieces become how many, on average over a sample."""

    source: tuple[int, int]
    target: tuple[int, int]

    def planned(self, lengths: npt.NDArray[np.int32], longest: int) -> npt.NDArray[np.int32]:
        """Returns the expected lengths, rounded up, and none above `longest` that was not before.

        Batches are planned with these, so that an update has the tokens that are asked for.
        """
        (old_source, new_source), (old_target, new_target) = self
        old, new = np.array([old_source, old_target]), np.array([new_source, new_target])
        # In integers, so that all machines round alike.
        expected = -(-lengths.astype(np.int64) * new // old)
        planned: npt.NDArray[np.int64] = np.maximum(lengths, np.minimum(expected, longest))
        return planned.astype(np.int32)


def growth(
    shards: Shards, dropout: SubwordDropout, numbers: npt.NDArray[np.int64] | None = None
) -> Growth:
    """Estimates the growth from pairs that are spread evenly over the data, or over `numbers`."""
    among = range(len(shards)) if numbers is None else numbers
    count = min(len(among), SAMPLED_PAIRS)
    pairs = [shards[int(among[number * len(among) // count])] for number in range(count)]
    return Growth(*(_growth_of(side, pairs, dropout) for side in ("source", "target")))


def _growth_of(side: Side, pairs: Sequence[PairIds], dropout: SubwordDropout) -> tuple[int, int]:
    before = [getattr(pair, side) for pair in pairs]
    # Steps count from 1, so no step draws the same.
    after = dropout.resegment(before, sys.maxsize, step=0, micro_batch=0, side=side)
    return sum(map(len, before)), sum(map(len, after))


class _Word:
    """A word as it is usually segmented, and the other segmentations that were drawn so far."""

    __slots__ = ("highs", "lows", "pieces", "segmentations", "text", "unchanged_below")

    def __init__(self, pieces: tuple[int, ...], text: str, unchanged_below: int) -> None:
        self.pieces, self.text = pieces, text
        self.unchanged_below = unchanged_below
        """Draws below this drop no merge."""
        self.lows: list[int] = []
        self.highs: list[int] = []
        self.segmentations: list[tuple[int, ...]] = []


class _Words(dict[bytes, _Word]):
    """Words by the bytes of their ids, added when they are first looked up."""

    def __init__(self, merges: Merges, share: float) -> None:
        super().__init__()
        self._merges, self._share = merges, share
        self._remembered = 0

    def __missing__(self, key: bytes) -> _Word:
        self._make_room()
        merges = self._merges
        pieces = tuple(np.frombuffer(key, np.int32).tolist())
        text = "".join(merges.pieces[piece] for piece in pieces)
        usual = None
        if all(merges.is_normal[piece] for piece in pieces):
            usual = merges.segment(text, self._share, draw=0)
        # Words that merges do not explain, of pieces that reach over spaces for example, stay.
        limit = usual.high if usual and usual.pieces == pieces else DRAWS
        word = self[key] = _Word(pieces, text, min(limit, DRAWS - 1))
        return word

    def segmentation(self, word: _Word, draw: int) -> tuple[int, ...]:
        """Returns the pieces that a draw gives to a word, of which it may change the pieces."""
        at = bisect_right(word.lows, draw) - 1
        if at >= 0 and draw < word.highs[at]:
            return word.segmentations[at]
        if word.unchanged_below == DRAWS - 1:
            return word.pieces
        self._make_room()
        found = self._merges.segment(word.text, self._share, draw)
        assert found
        word.lows.insert(at + 1, found.low)
        word.highs.insert(at + 1, found.high)
        word.segmentations.insert(at + 1, found.pieces)
        return found.pieces

    def _make_room(self) -> None:
        """Forgets everything where there is too much, as a rare word is not needed again soon."""
        self._remembered += 1
        if self._remembered > MOST_REMEMBERED:
            self.clear()
            self._remembered = 1


def _draws(
    seed: int, step: int, micro_batch: int, side: Side, count: int
) -> npt.NDArray[np.uint64]:
    """Returns a random number for each word, whichever rank asks for it."""
    place = f"subwords/{seed}/{step}/{micro_batch}/{side}".encode()
    key = np.frombuffer(hashlib.blake2b(place, digest_size=16).digest(), "<u8")
    # The raw stream is the one thing of its random numbers that NumPy promises never to change.
    return np.random.Philox(key=key.astype(np.uint64)).random_raw(count)


def _shorten(
    new_sizes: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    draws: npt.NDArray[np.uint64],
    row_bounds: npt.NDArray[np.int64],
    widest: int,
) -> None:
    """Gives words of each row that got too long their old sizes back, in random order."""
    lengths = np.add.reduceat(new_sizes, row_bounds[:-1])
    for row in np.flatnonzero(lengths > widest):
        begin, end = row_bounds[row : row + 2]
        grown = begin + np.flatnonzero(new_sizes[begin:end] > sizes[begin:end])
        too_many = int(lengths[row]) - widest
        # The lower half of a draw has hardly a say in what is dropped.
        for word in grown[np.argsort(draws[grown].astype(np.uint32), kind="stable")]:
            if too_many <= 0:
                break
            too_many -= int(new_sizes[word] - sizes[word])
            new_sizes[word] = sizes[word]


def _put_together(
    ids: Ids,
    sizes: npt.NDArray[np.int64],
    new_sizes: npt.NDArray[np.int64],
    changed: npt.NDArray[np.int64],
    pieces: Iterable[int],
) -> Ids:
    """Returns the ids of all words, where those that `changed` consist of `pieces` instead."""
    is_changed = np.zeros(len(sizes), dtype=bool)
    is_changed[changed] = True
    together = np.empty(int(new_sizes.sum()), dtype=np.int32)
    is_new = np.repeat(is_changed, new_sizes)
    together[~is_new] = ids[np.repeat(~is_changed, sizes)]
    together[is_new] = np.fromiter(pieces, np.int32, int(is_new.sum()))
    return together
