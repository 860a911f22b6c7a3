"""What every engine offers: sentences as ids come in, hypotheses with scores go out.

Splitting, batching and detokenizing exist once, in `translator`; an engine only searches.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dragoman.config import DecodingSettings
from dragoman.tokenizer import Ids

EngineName = Literal["auto", "torch", "ctranslate2"]
DeviceName = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "int16", "int8"]

_LENGTH_GROUP = 16
_LEAST_ROOM = 10


class Hypothesis(NamedTuple):
    ids: Ids
    """Without start and end pieces."""
    score: float
    """Log-probability over length^penalty; the end piece counts as one of the length."""
    attention: npt.NDArray[np.float32] | None = None
    """What each piece attends to: [ids, source pieces without the end]; None unless asked for."""


class Device(Protocol):
    """Where an engine computes; a `torch.device` is one."""

    @property
    def type(self) -> str:
        """ "cpu" or "cuda"."""

    @property
    def index(self) -> int | None:
        """Which of several."""


@dataclass(frozen=True)
class Cpu:
    """The processor as a device, without torch."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type


class Engine(Protocol):
    @property
    def description(self) -> str:
        """Says what computes, for a person: "torch on cpu"."""

    @property
    def replicas(self) -> int:
        """Batches that are searched at the same time."""

    def search(
        self,
        batches: Iterable[Sequence[Ids]],
        settings: DecodingSettings,
        hypotheses: int = 1,
        scored: bool = False,
        prefixes: Iterable[Sequence[Ids]] | None = None,
        attentive: bool = False,
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yields, batch by batch and in order, the best `hypotheses` of each sentence, best first.

        Sentences end with their end piece. Those of one batch have the same `most_pieces`. Greedy
        search is faster without scores; they may be NaN unless they are asked for with `scored`.
        `prefixes` are for each sentence of each batch the pieces, at least one, that hypotheses
        begin with. With `attentive`, hypotheses have their attention.
        """


def length_limit(
    sources: Sequence[Ids], prefixes: Sequence[Ids], settings: DecodingSettings
) -> int:
    """Returns how many pieces the translations of a batch may have."""
    return most_pieces(max(map(len, (*sources, *prefixes))), settings)


def most_pieces(source_pieces: int, settings: DecodingSettings) -> int:
    """Returns how many pieces a translation may have; a long prefix counts like a long source.

    The same for groups of lengths, since CTranslate2 has one limit for a whole batch.
    """
    rounded = -(-source_pieces // _LENGTH_GROUP) * _LENGTH_GROUP
    return int(settings.max_length_factor * rounded) + _LEAST_ROOM
