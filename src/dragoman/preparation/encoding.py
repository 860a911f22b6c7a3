"""Encodes text as ids: one slice of pairs comes in, one shard goes out, with its figures."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.corpus.cleaning import EXAMPLES_KEPT
from dragoman.corpus.pair import Pair
from dragoman.preparation.plan import Plan
from dragoman.preparation.stage import from_text
from dragoman.preparation.task import FileRange, Inputs, Result, StageFile, Task
from dragoman.shards.files import ShardFile, files_of_shard, shard_contents
from dragoman.tokenizer import Tokenizer, WordCache, positions

# Lengths are counted in buckets of eight pieces; the last holds all that are longer.
BUCKET = 8
BUCKETS = 33


@dataclass
class SideFigures:
    tokens: int = 0
    unknown_tokens: int = 0
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))


@dataclass
class ShardFigures:
    """What the passport adds up over all shards of a split."""

    pairs: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Pair]] = field(default_factory=dict)
    """Some dropped pairs for each reason; of one shard, not added up."""
    source: SideFigures = field(default_factory=SideFigures)
    target: SideFigures = field(default_factory=SideFigures)
    used_pieces: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    files: list[ShardFile] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "dropped": self.dropped,
            "examples": self.examples,
            "sides": [
                [side.tokens, side.unknown_tokens, side.lengths.tolist()]
                for side in (self.source, self.target)
            ],
            "used_pieces": self.used_pieces.tolist(),
            "files": [list(file) for file in self.files],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ShardFigures":
        source, target = (
            SideFigures(tokens, unknown, np.array(lengths, np.int64))
            for tokens, unknown, lengths in content["sides"]
        )
        return cls(
            pairs=content["pairs"],
            dropped=content["dropped"],
            source=source,
            target=target,
            used_pieces=np.array(content["used_pieces"], np.int64),
            files=[ShardFile(*file) for file in content["files"]],
        )

    def add(self, other: "ShardFigures") -> None:
        self.pairs += other.pairs
        for reason, number in other.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + number
        for mine, theirs in ((self.source, other.source), (self.target, other.target)):
            mine.tokens += theirs.tokens
            mine.unknown_tokens += theirs.unknown_tokens
            mine.lengths += theirs.lengths
        self.used_pieces = np.union1d(self.used_pieces, other.used_pieces)
        self.files += other.files


class EncodingSettings(NamedTuple):
    weight: float
    """Of all pairs, unless each has its own."""
    max_length: int
    folder: str
    """Its name, for the passport."""
    stem: str


def encode_tasks(plan: Plan) -> Iterator[Task]:
    """Yields a task for each slice that is not encoded yet."""
    train, max_length = plan.config.data.train, plan.config.data.max_length
    for number in plan.clean.numbers():
        if plan.shards.is_done(number):
            continue
        inputs: dict[str, FileRange | StageFile] = {
            "model": FileRange(plan.tokenizer_file),
            "flags": StageFile(plan.kept, number, "flags"),
            **{name: StageFile(plan.clean, number, name) for name in ("source", "target", "keys")},
        }
        if plan.has_larger_weights:
            inputs["weights"] = StageFile(plan.overlap, number, "weights")
        weight = train[plan.clean.record(number)["source"]].weight
        settings = EncodingSettings(
            weight, max_length, plan.shards.folder.name, f"train-{number:05d}"
        )
        yield Task(encode_slice, settings, inputs, plan.shards, number)


def encode_slice(settings: EncodingSettings, inputs: Inputs) -> Result:
    """Encodes the pairs of a slice that stay."""
    content = {name: value.read() for name, value in inputs.items()}
    kept = np.frombuffer(content["flags"], dtype=np.bool_)
    keys = np.frombuffer(content["keys"], dtype="<u8")[kept]
    weight: float | npt.NDArray[np.float64] = settings.weight
    if "weights" in content:
        weight = np.frombuffer(content["weights"], dtype="<f8")[kept]
    pairs = from_text(content["source"], content["target"])
    figures, files = encode_shard(
        [pair for pair, stays in zip(pairs, kept, strict=True) if stays],
        repeats_of(keys, weight),
        _words(content["model"]),
        settings.max_length,
        settings.folder,
        settings.stem,
    )
    return Result(figures.to_json(), files=files, pairs=len(pairs))


_local = threading.local()


def _words(model: bytes) -> WordCache:
    """Returns the words that this thread has encoded so far: slices have most of them in common."""
    words: WordCache | None = getattr(_local, "words", None)
    if words is None or words.tokenizer.model != model:
        words = _local.words = WordCache(Tokenizer(model))
    return words


def forget_words() -> None:
    """Frees what this thread remembers: it may go on to train."""
    _local.words = None


def encode_shard(
    pairs: Sequence[Pair],
    repeats: npt.NDArray[np.int64] | None,
    words: WordCache,
    max_length: int,
    folder: str,
    stem: str,
) -> tuple[ShardFigures, dict[str, bytes]]:
    """Returns the pairs that fit as files of shard `stem`, in the folder of this name.

    `repeats` is how often each is to be seen.
    """
    figures, tokenizer = ShardFigures(), words.tokenizer
    ids, of_sides = words.encode([side for pair in pairs for side in pair])
    lengths = of_sides.reshape(-1, 2)
    begins = (np.cumsum(of_sides) - of_sides).reshape(-1, 2)
    is_kept = np.ones(len(pairs), dtype=np.bool_)
    for reason, holds in (
        # Text without any known piece leaves only the end piece.
        ("empty for the tokenizer", (lengths < 2).any(axis=1)),
        ("longer than data.max_length", (lengths > max_length).any(axis=1)),
    ):
        newly = holds & is_kept
        if newly.any():
            figures.dropped[reason] = int(newly.sum())
            figures.examples[reason] = [pairs[n] for n in np.flatnonzero(newly)[:EXAMPLES_KEPT]]
        is_kept &= ~holds
    numbers = np.flatnonzero(is_kept)
    if repeats is not None:
        numbers = np.repeat(numbers, repeats[numbers])
    figures.pairs = len(numbers)
    bounds = np.zeros(2 * len(numbers) + 1, dtype=np.int64)
    np.cumsum(lengths[numbers].reshape(-1), out=bounds[1:])
    dtype = np.uint16 if tokenizer.size <= 1 << 16 else np.uint32
    places = positions(begins[numbers].reshape(-1), lengths[numbers].reshape(-1))
    tokens: npt.NDArray[np.integer] = ids[places].astype(dtype)
    unknown_before = np.concatenate([[0], np.cumsum(tokens == tokenizer.unknown)])
    unknown = np.diff(unknown_before[bounds])
    for place, side in enumerate((figures.source, figures.target)):
        of_side = lengths[numbers, place]
        side.tokens = int(of_side.sum())
        side.unknown_tokens = int(unknown[place::2].sum())
        side.lengths = np.bincount(np.minimum(of_side // BUCKET, BUCKETS - 1), minlength=BUCKETS)
    figures.used_pieces = np.unique(tokens).astype(np.int64)
    files = shard_contents(stem, tokens, bounds)
    figures.files = files_of_shard(folder, files)
    return figures, files


def repeats_of(
    keys: npt.NDArray[np.uint64], weight: float | npt.NDArray[np.float64]
) -> npt.NDArray[np.int64] | None:
    """Returns how often each pair is seen: the weight's integer part, and once more for a share.

    Which pairs are in the share follows from their keys, so it is the same on every machine. The
    weight is that of all pairs, or there is one for each.
    """
    if isinstance(weight, float) and weight == 1.0:
        return None
    whole, share = np.divmod(weight, 1.0)
    chance = (keys >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return np.asarray(whole).astype(np.int64) + (chance < share).astype(np.int64)
