"""Greedy and beam search, batched, with cached prefixes. Ids in, hypotheses without end pieces out.

Both find what CTranslate2 finds: they keep, finish and score hypotheses by the same rules. Pieces
that a hypothesis has to begin with count in its length, and have the probability 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.batches.collate import SourceBatch
from dragoman.decoding.engine import Hypothesis
from dragoman.decoding.ensemble import Models, advance, begin
from dragoman.tokenizer import Ids

_FREE = -1
"""Stands for a piece that is not prescribed."""


@torch.inference_mode()
def greedy_search(
    models: Models,
    batch: SourceBatch,
    start: int,
    end: int,
    max_length: int,
    length_penalty: float,
    prefixes: Sequence[Ids] = (),
) -> list[Hypothesis]:
    """Returns the most probable next pieces, one by one; at most `max_length` per sentence."""
    decoding = begin(models, batch)
    device = batch.source_BS.device
    sentences = len(batch.source_BS)
    ids: list[list[int]] = [[] for _ in range(sentences)]
    scores = [0.0] * sentences
    lengths = [0] * sentences
    active = list(range(sentences))
    tokens_B = torch.full((sentences,), start, device=device)
    given_BP = _padded(prefixes, device)
    for length in range(1, max_length + 1):
        logits_BV, decoding = advance(models, tokens_B, decoding)
        best_B, tokens_B = logits_BV.max(dim=1)
        log_probs_B = best_B - logits_BV.logsumexp(dim=1)
        if length <= given_BP.shape[1]:
            given_B = given_BP[active, length - 1]
            tokens_B = torch.where(given_B == _FREE, tokens_B, given_B)
            log_probs_B = log_probs_B.masked_fill(given_B != _FREE, 0.0)
        log_probs = log_probs_B.tolist()
        going_on = []
        for row, (sentence, token) in enumerate(zip(active, tokens_B.tolist(), strict=True)):
            scores[sentence] += log_probs[row]
            lengths[sentence] = length
            if token != end:
                ids[sentence].append(token)
                going_on.append(row)
        if not going_on:
            break
        if len(going_on) < len(active):
            rows = torch.tensor(going_on, dtype=torch.int64, device=device)
            decoding, tokens_B = decoding.keep(rows).reorder(rows), tokens_B[rows]
            active = [active[row] for row in going_on]
    return [
        Hypothesis(found, score / length**length_penalty)
        for found, score, length in zip(ids, scores, lengths, strict=True)
    ]


@torch.inference_mode()
def beam_search(
    models: Models,
    batch: SourceBatch,
    start: int,
    end: int,
    max_length: int,
    beam: int,
    length_penalty: float,
    hypotheses: int = 1,
    prefixes: Sequence[Ids] = (),
) -> list[list[Hypothesis]]:
    """Returns the best hypotheses of each sentence by log-probability over length^penalty.

    A sentence is done once `beam` hypotheses have ended. Without a penalty it is done earlier: when
    enough have ended and the best of all is among them, which nothing longer can surpass.
    """
    decoding = begin(models, batch)
    device = batch.source_BS.device
    sentences = len(batch.source_BS)
    finished: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    has_best = [False] * sentences
    active = list(range(sentences))
    tokens_R = torch.full((sentences * beam,), start, device=device)
    # All hypotheses are equal before the first piece, so only one of each sentence may grow.
    scores_BJ = torch.full((sentences, beam), float("-inf"), device=device)
    scores_BJ[:, 0] = 0.0
    history_BJT = torch.empty((sentences, beam, 0), dtype=torch.int64, device=device)
    given_BP = _padded(prefixes, device)
    for length in range(1, max_length + 1):
        logits_RV, decoding = advance(models, tokens_R, decoding)
        log_probs_RV = logits_RV.log_softmax(dim=1)
        vocabulary = log_probs_RV.shape[1]
        totals_BX = (scores_BJ.view(-1, 1) + log_probs_RV).view(len(active), -1)
        # Of twice as many as wanted at most half can end, so enough are left to continue.
        best_BC, places_BC = totals_BX.topk(2 * beam, dim=1)
        parents_BC, pieces_BC = places_BC // vocabulary, places_BC % vocabulary
        if length <= given_BP.shape[1] + 1 and prefixes:
            _follow(given_BP[active], length, end, best_BC, parents_BC, pieces_BC)
        ends_BC = pieces_BC == end
        # At the last step, all count as they are: cut off.
        done_BJ = ends_BC[:, :beam] | (length == max_length)

        for row, place in done_BJ.nonzero().tolist():
            score = best_BC[row, place].item() / length**length_penalty
            if score > float("-inf"):
                sentence, piece = active[row], int(pieces_BC[row, place])
                ids = history_BJT[row, parents_BC[row, place]].tolist()
                finished[sentence].append(Hypothesis(ids + [piece] * (piece != end), score))
                has_best[sentence] |= place == 0
        if length == max_length:
            break

        alive_BJ = ends_BC.to(torch.int8).argsort(dim=1, stable=True)[:, :beam]
        scores_BJ = best_BC.gather(1, alive_BJ)
        parents_BJ = parents_BC.gather(1, alive_BJ)
        pieces_BJ = pieces_BC.gather(1, alive_BJ)
        grown = history_BJT.gather(1, parents_BJ.unsqueeze(2).expand(-1, -1, length - 1))
        history_BJT = torch.cat([grown, pieces_BJ.unsqueeze(2)], dim=2)

        going_on = []
        for row, sentence in enumerate(active):
            ended = len(finished[sentence])
            is_done = (
                ended >= beam if length_penalty else has_best[sentence] and ended >= hypotheses
            )
            if not is_done:
                going_on.append(row)
        if not going_on:
            break
        kept_B = torch.tensor(going_on, dtype=torch.int64, device=device)
        if len(going_on) < len(active):
            decoding, history_BJT = decoding.keep(kept_B), history_BJT[kept_B]
            scores_BJ = scores_BJ[kept_B]
            active = [active[row] for row in going_on]
        decoding = decoding.reorder((kept_B[:, None] * beam + parents_BJ[kept_B]).flatten())
        tokens_R = pieces_BJ[kept_B].flatten()
    return [sorted(found, key=_score, reverse=True)[:hypotheses] for found in finished]


def _padded(prefixes: Sequence[Ids], device: torch.device) -> Tensor:
    """Returns prescribed pieces as [B, P]; there are none for a sentence behind its prefix."""
    longest = max(map(len, prefixes), default=0)
    rows = [[*prefix, *[_FREE] * (longest - len(prefix))] for prefix in prefixes]
    return torch.tensor(rows, dtype=torch.int64, device=device).view(len(prefixes), longest)


def _follow(
    given_BP: Tensor, length: int, end: int, best_BC: Tensor, parents_BC: Tensor, pieces_BC: Tensor
) -> None:
    """Changes candidates to those that prefixes leave, as CTranslate2 does.

    Within a prefix only one hypothesis is alive. Where it has just ended, all candidates come from
    that one: only the best of them may end there, or a wide beam would find the end at once.
    """
    is_given_BP = given_BP != _FREE
    lengths_B = is_given_BP.sum(dim=1)
    inside_B = lengths_B >= length
    if inside_B.any():
        best_BC[inside_B] = float("-inf")
        best_BC[inside_B, 0] = 0.0
        parents_BC[inside_B] = 0
        pieces_BC[inside_B] = given_BP[inside_B, length - 1].unsqueeze(1)
    early_BC = (pieces_BC == end) & (lengths_B == length - 1).unsqueeze(1)
    early_BC[:, 0] = False
    best_BC[early_BC] = float("-inf")
    pieces_BC[early_BC] = 0


def _score(hypothesis: Hypothesis) -> float:
    return hypothesis.score
