"""Greedy and beam search, batched, with cached prefixes. Ids in, ids out, end pieces removed."""

from collections.abc import Sequence

import torch

from dragoman.batches.collate import SourceBatch
from dragoman.model.transformer import Prefix, Transformer

Ids = list[int]


@torch.inference_mode()
def greedy_search(
    model: Transformer, batch: SourceBatch, start: int, end: int, max_lengths: Sequence[int]
) -> list[Ids]:
    """Returns the most probable next pieces, one by one; at most `max_lengths` per sentence."""
    source = model.encode(batch.source_BS, batch.source_mask)
    device = batch.source_BS.device
    results: list[Ids] = [[] for _ in max_lengths]
    active = list(range(len(max_lengths)))
    tokens_B = torch.full((len(active),), start, device=device)
    prefix = Prefix()
    while active:
        hidden_BD, prefix = model.step(tokens_B, prefix, source)
        tokens_B = (hidden_BD @ model.output_weight.T).argmax(dim=1)
        going_on = []
        for row, (sentence, token) in enumerate(zip(active, tokens_B.tolist(), strict=True)):
            if token != end:
                results[sentence].append(token)
                if len(results[sentence]) < max_lengths[sentence]:
                    going_on.append(row)
        if len(going_on) < len(active):
            rows = torch.tensor(going_on, dtype=torch.int64, device=device)
            source, prefix, tokens_B = source.rows(rows), prefix.rows(rows), tokens_B[rows]
            active = [active[row] for row in going_on]
    return results


@torch.inference_mode()
def beam_search(
    model: Transformer,
    batch: SourceBatch,
    start: int,
    end: int,
    max_lengths: Sequence[int],
    beam: int,
    length_penalty: float,
) -> list[Ids]:
    """Returns the best of `beam` hypotheses by log-probability over ((5 + length) / 6)^penalty."""
    source = model.encode(batch.source_BS, batch.source_mask)
    device = batch.source_BS.device
    finished: list[list[tuple[float, Ids]]] = [[] for _ in max_lengths]
    active = list(range(len(max_lengths)))
    tokens_R = torch.full((len(active) * beam,), start, device=device)
    # All hypotheses are equal before the first piece, so only one of each sentence may grow.
    scores_BJ = torch.full((len(active), beam), float("-inf"), device=device)
    scores_BJ[:, 0] = 0.0
    history_BJT = torch.empty((len(active), beam, 0), dtype=torch.int64, device=device)
    prefix = Prefix()
    while active:
        hidden_RD, prefix = model.step(tokens_R, prefix, source)
        log_probs_RV = (hidden_RD @ model.output_weight.T).float().log_softmax(dim=1)
        vocabulary = log_probs_RV.shape[1]
        totals_BX = (scores_BJ.view(-1, 1) + log_probs_RV).view(len(active), -1)
        # Of twice as many as wanted at most half can end, so enough are left to continue.
        best_BC, places_BC = totals_BX.topk(2 * beam, dim=1)
        parents_BC, pieces_BC = places_BC // vocabulary, places_BC % vocabulary
        ends_BC = pieces_BC == end
        length = history_BJT.shape[2] + 1
        penalty = ((5 + length) / 6) ** length_penalty

        for row, place in ends_BC[:, :beam].nonzero().tolist():
            score = best_BC[row, place].item() / penalty
            if score > float("-inf"):
                ids = history_BJT[row, parents_BC[row, place]].tolist()
                finished[active[row]].append((score, ids))

        alive_BJ = ends_BC.to(torch.int8).argsort(dim=1, stable=True)[:, :beam]
        scores_BJ = best_BC.gather(1, alive_BJ)
        parents_BJ = parents_BC.gather(1, alive_BJ)
        pieces_BJ = pieces_BC.gather(1, alive_BJ)
        grown = history_BJT.gather(1, parents_BJ.unsqueeze(2).expand(-1, -1, length - 1))
        history_BJT = torch.cat([grown, pieces_BJ.unsqueeze(2)], dim=2)

        going_on = []
        for row, sentence in enumerate(active):
            if length >= max_lengths[sentence]:
                # Cut off: a hypothesis without its end counts only where none has one.
                if not finished[sentence]:
                    finished[sentence].append((0.0, history_BJT[row, 0].tolist()))
            elif len(finished[sentence]) < beam:
                going_on.append(row)
        kept_B = torch.tensor(going_on, dtype=torch.int64, device=device)
        if len(going_on) < len(active):
            source, history_BJT = source.rows(kept_B), history_BJT[kept_B]
            scores_BJ = scores_BJ[kept_B]
            active = [active[row] for row in going_on]
        prefix = prefix.rows((kept_B[:, None] * beam + parents_BJ[kept_B]).flatten())
        tokens_R = pieces_BJ[kept_B].flatten()
    return [max(hypotheses, key=_score)[1] for hypotheses in finished]


def _score(hypothesis: tuple[float, Ids]) -> float:
    return hypothesis[0]
