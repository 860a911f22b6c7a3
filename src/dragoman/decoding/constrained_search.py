"""Beam search for translations that contain given terms: ids in, hypotheses out.

Dynamic beam allocation after Post and Vilar (2018): the beam is shared out among hypotheses that
have met none of the terms, some, and all of them, so that each kind competes with its own. The one
that is furthest ahead is always kept and led on, so after as many steps as the terms have pieces
there is a hypothesis with all of them, and it stays. A hypothesis ends only when it has met all.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.batches.collate import SourceBatch
from dragoman.decoding.constraints import (
    WORD_START,
    Pattern,
    Progress,
    advance,
    amount_met,
    next_pieces,
)
from dragoman.decoding.engine import Hypothesis
from dragoman.decoding.ensemble import Models, begin
from dragoman.decoding.ensemble import advance as advance_models
from dragoman.tokenizer import Ids

MOST_ROWS = 100
"""Most hypotheses of a sentence that are kept at once."""
MOST_PER_ROW = 8
"""Most pieces by which a single hypothesis is extended, beside one for the end."""
_DEAD = float("-inf")


class Row(NamedTuple):
    """A hypothesis that is being extended."""

    total: float
    ids: tuple[int, ...]
    progress: Progress
    parent: int = 0
    """Place of the hypothesis that it extends among those of the step before."""


class Search(NamedTuple):
    """One sentence: what it must contain and begin with, and what has been found."""

    patterns: Sequence[Pattern]
    prefix: Ids
    width: int
    rows: list[Row]
    finished: list[Hypothesis]


class Limits(NamedTuple):
    start: int
    end: int
    max_length: int
    beam: int
    length_penalty: float
    hypotheses: int = 1


@torch.inference_mode()
def constrained_search(
    models: Models,
    batch: SourceBatch,
    limits: Limits,
    patterns: Sequence[Sequence[Pattern]],
    starts: Sequence[bool],
    prefixes: Sequence[Ids] = (),
) -> list[list[Hypothesis]]:
    """Returns the best hypotheses of each sentence that contain its patterns.

    `starts` says of each piece whether it starts a word. The beam is widened by the pieces of the
    terms. Where `max_length` leaves no room for all terms, a hypothesis with most of them is found.
    """
    device = batch.source_BS.device
    decoding = begin(models, batch)
    searches = [
        _started(of_sentence, prefix, limits.beam)
        for of_sentence, prefix in zip(patterns, prefixes or [[] for _ in patterns], strict=True)
    ]
    active = searches
    places = max(search.width for search in searches)
    per_row = min(limits.beam, MOST_PER_ROW) + 1
    starts_V = torch.tensor(starts, dtype=torch.bool, device=device)
    starts_V[limits.end] = False  # it leads on to nothing
    tokens_R = torch.full((len(active) * places,), limits.start, device=device)
    for length in range(1, limits.max_length + 1):
        logits_RV, decoding = advance_models(models, tokens_R, decoding)
        log_probs_RV = logits_RV.log_softmax(dim=1)
        found = _candidates(active, log_probs_RV, places, per_row, starts_V)
        for search, candidates in zip(active, found, strict=True):
            _extend(search, candidates, length, limits, starts)
        going_on = [n for n, search in enumerate(active) if len(search.finished) < limits.beam]
        if length == limits.max_length or not going_on:
            break
        parents = [
            number * places + row.parent
            for number in going_on
            for row in _filled(active[number], places)
        ]
        if len(going_on) < len(active):
            decoding = decoding.keep(torch.tensor(going_on, device=device))
            active = [active[number] for number in going_on]
        decoding = decoding.reorder(torch.tensor(parents, device=device))
        pieces = [row.ids[-1] for search in active for row in _filled(search, places)]
        tokens_R = torch.tensor(pieces, device=device)
    return [_best(search, limits) for search in searches]


def _started(patterns: Sequence[Pattern], prefix: Ids, beam: int) -> Search:
    width = min(max(MOST_ROWS, beam), beam + sum(map(len, patterns)))
    return Search(patterns, prefix, width, [Row(0.0, (), (0,) * len(patterns))], [])


def _filled(search: Search, places: int) -> Iterator[Row]:
    """Yields the rows of a sentence, and dead ones up to the number that all sentences have."""
    yield from search.rows
    for _ in range(places - len(search.rows)):
        yield search.rows[0]


def _candidates(
    active: Sequence[Search], log_probs_RV: Tensor, places: int, per_row: int, starts_V: Tensor
) -> list[dict[tuple[int, int], float]]:
    """Returns, for each sentence, log-probabilities of candidates: a row and its next piece.

    These are the best of each row, and what leads it on to its terms.
    """
    vocabulary, device = log_probs_RV.shape[1], log_probs_RV.device
    best_RC = log_probs_RV.topk(min(per_row, vocabulary), dim=1).indices.tolist()
    best_starts_R = log_probs_RV.masked_fill(~starts_V, _DEAD).argmax(dim=1).tolist()
    chosen: list[list[tuple[int, int]]] = []
    flat: list[int] = []
    for number, search in enumerate(active):
        of_sentence = set()
        for place, row in enumerate(search.rows):
            flat_row = number * places + place
            pieces = {*best_RC[flat_row], *next_pieces(search.patterns, row.progress)}
            if WORD_START in pieces:
                pieces = pieces - {WORD_START} | {best_starts_R[flat_row]}
            if len(row.ids) < len(search.prefix):
                pieces = {search.prefix[len(row.ids)]}
            of_sentence |= {(place, piece) for piece in pieces}
        chosen.append(sorted(of_sentence))
        flat += [(number * places + place) * vocabulary + piece for place, piece in chosen[-1]]
    values = iter(log_probs_RV.flatten()[torch.tensor(flat, device=device)].tolist())
    return [
        dict(zip(of_sentence, islice(values, len(of_sentence)), strict=True))
        for of_sentence in chosen
    ]


def _extend(
    search: Search,
    log_probs: dict[tuple[int, int], float],
    length: int,
    limits: Limits,
    starts: Sequence[bool],
) -> None:
    """Replaces the rows of a sentence by the best of the candidates, and adds what has ended."""
    grown, ended = [], []
    for (place, piece), log_prob in log_probs.items():
        row = search.rows[place]
        is_given = len(row.ids) < len(search.prefix)
        progress = advance(search.patterns, row.progress, row.ids, piece, starts)
        total = row.total + (0.0 if is_given else log_prob)
        new = Row(total, (*row.ids, piece), progress, place)
        if piece != limits.end:
            grown.append(new)
        elif _is_met(search, progress):
            ended.append(new)
    kept = allocate(search.patterns, grown, search.width)
    everything = sum(map(len, search.patterns))
    with_all = [row for row in kept if amount_met(search.patterns, row.progress) == everything]
    # What ends competes with those that have met all terms as well, for their places in the beam.
    places = max(1, len(with_all) + search.width - len(kept))
    best = sorted([*with_all, *ended], key=_total, reverse=True)[:places]
    for row in best:
        if row.ids[-1] == limits.end:
            score = row.total / length**limits.length_penalty
            search.finished.append(Hypothesis(list(row.ids[:-1]), score))
    search.rows[:] = kept


def allocate(patterns: Sequence[Pattern], rows: Sequence[Row], width: int) -> list[Row]:
    """Returns at most `width` rows: one of each amount met in turn, the largest amount first."""
    banks: dict[int, list[Row]] = {}
    for row in sorted(rows, key=_total, reverse=True):
        banks.setdefault(amount_met(patterns, row.progress), []).append(row)
    in_turn = zip_longest(*(banks[amount] for amount in sorted(banks, reverse=True)))
    dealt = (row for of_rank in in_turn for row in of_rank if row is not None)
    return list(islice(dealt, width))


def _best(search: Search, limits: Limits) -> list[Hypothesis]:
    """Returns what has ended, or was cut off with all terms; else the row with most of them."""
    found = list(search.finished)
    if len(found) < limits.beam:  # the rows are as long as may be
        for row in search.rows:
            # The end of the text is the end of a word.
            if len(row.ids) == limits.max_length and _is_met_at_end(search, row):
                found.append(_cut_off(row, limits))
    if not found:
        most = max(
            search.rows, key=lambda row: (amount_met(search.patterns, row.progress), row.total)
        )
        return [_cut_off(most, limits)]
    return sorted(found, key=lambda each: each.score, reverse=True)[: limits.hypotheses]


def _cut_off(row: Row, limits: Limits) -> Hypothesis:
    return Hypothesis(list(row.ids), row.total / len(row.ids) ** limits.length_penalty)


def _is_met(search: Search, progress: Progress) -> bool:
    return all(
        matched == len(pattern) for pattern, matched in zip(search.patterns, progress, strict=True)
    )


def _is_met_at_end(search: Search, row: Row) -> bool:
    return all(
        matched == len(pattern) or pattern[matched:] == (WORD_START,)
        for pattern, matched in zip(search.patterns, row.progress, strict=True)
    )


def _total(row: Row) -> float:
    return row.total
