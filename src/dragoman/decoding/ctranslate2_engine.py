"""Searches with CTranslate2, on a CPU faster than torch, and with integers on request.

With float32 the hypotheses are those of the torch engine, but for ties within rounding.
"""

import math
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from dragoman.config import DecodingSettings
from dragoman.cores import usable_cores
from dragoman.decoding.engine import Device, Hypothesis, Precision, length_limit
from dragoman.errors import UserError
from dragoman.tokenizer import Ids, Tokenizer

MOST_REPLICAS = 8
"""Replicas share the weights. Each has a core of its own, which beats one replica on all cores:
small matrices do not keep several cores busy."""
_IMPOSSIBLE = -1e6
"""CTranslate2 fills a beam up with hypotheses of far lower scores where a prefix leaves few."""
BATCHES_AHEAD = 4
"""Batches per replica that wait in its queue, so that no replica waits for Python."""


class CTranslate2Engine:
    def __init__(
        self, folder: Path, tokenizer: Tokenizer, precision: Precision, device: Device
    ) -> None:
        """Loads a model from the files of `ctranslate2_model.write_model`, which may then go."""
        check_precision(precision, device)
        self.precision, self.device = precision, device
        self._tokenizer, self._pieces = tokenizer, tokenizer.pieces
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        threads = _threads() if device.type == "cpu" else 1
        self.replicas = min(threads, MOST_REPLICAS)
        self._translator = ctranslate2.Translator(
            str(folder),
            device=device.type,
            device_index=device.index or 0,
            compute_type=precision,
            inter_threads=self.replicas,
            intra_threads=threads // self.replicas,
            max_queued_batches=-1,
        )

    @property
    def description(self) -> str:
        return f"ctranslate2 in {self.precision} on {self.device}"

    def search(
        self,
        batches: Iterable[Sequence[Ids]],
        settings: DecodingSettings,
        hypotheses: int = 1,
        scored: bool = False,
        prefixes: Iterable[Sequence[Ids]] | None = None,
        attentive: bool = False,
    ) -> Iterator[list[list[Hypothesis]]]:
        waiting: deque[list[Any]] = deque()
        wanted = hypotheses, scored, attentive
        for batch, given in zip(batches, prefixes or repeat(()), strict=False):
            waiting.append(self._submit(batch, given, settings, *wanted))
            if len(waiting) > BATCHES_AHEAD * self.replicas:
                yield self._results(waiting.popleft())
        while waiting:
            yield self._results(waiting.popleft())

    def _submit(
        self,
        encoded: Sequence[Ids],
        prefixes: Sequence[Ids],
        settings: DecodingSettings,
        hypotheses: int,
        scored: bool,
        attentive: bool,
    ) -> list[Any]:
        # The model's config adds the end piece, as for anyone who loads it.
        sources = [[self._pieces[piece] for piece in ids[:-1]] for ids in encoded]
        given = [[self._pieces[piece] for piece in ids] for ids in prefixes]
        submitted: list[Any] = self._translator.translate_batch(
            sources,
            target_prefix=given or None,
            asynchronous=True,
            beam_size=settings.beam,
            num_hypotheses=min(hypotheses, settings.beam),
            length_penalty=settings.length_penalty,
            max_decoding_length=length_limit(encoded, prefixes, settings),
            min_decoding_length=0,
            max_input_length=0,
            return_scores=scored or settings.beam > 1,
            # The end piece counts as one of the length.
            return_end_token=True,
            return_attention=attentive,
            # CTranslate2 4.8 mixes up sentences of a batch in the attention of the first piece.
            max_batch_size=1 if attentive else 0,
        )
        return submitted

    def _results(self, submitted: Sequence[Any]) -> list[list[Hypothesis]]:
        return [self._hypotheses(each.result()) for each in submitted]

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        end = self._tokenizer.end
        hypotheses = []
        scores = result.scores or [math.nan]
        attention = result.attention or [None] * len(scores)
        for pieces, score, rows in zip(result.hypotheses, scores, attention, strict=True):
            ids = [self._ids[piece] for piece in pieces]
            ids = ids[:-1] if ids[-1:] == [end] else ids
            attended = None if rows is None else np.array(rows[: len(ids)], dtype=np.float32)
            if not score < _IMPOSSIBLE:
                hypotheses.append(Hypothesis(ids, score, attended))
        return hypotheses


def check_precision(precision: Precision, device: Device) -> None:
    """Refuses a precision that this machine's processor cannot compute with."""
    supported = ctranslate2.get_supported_compute_types(device.type, device.index or 0)
    if precision not in supported:
        known = ", ".join(name for name in ("float32", "int16", "int8") if name in supported)
        raise UserError(
            f"precision {precision}: CTranslate2 does not have it on this machine's {device.type}; "
            f"take one of {known}"
        )


def _threads() -> int:
    """Returns as many threads as torch uses, or would use if it were imported."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        named = os.environ.get(name, "").split(",")[0].strip()
        if named.isdecimal() and int(named):
            return int(named)
    return usable_cores()
