"""What the scripts of all tools share: their job, the run's weights, and answering requests.

A request is a line of JSON: {"batches": [[ids, ...], ...], "limits": [pieces, ...], "beam": N}.
Sentences come with their end piece, in batches of similar length; `limits` bounds the pieces of a
batch's translations. The answer is {"seconds": S, "batches": [[ids, ...], ...]} without end pieces.
Runs in the environments of other tools, so it imports nothing of the project.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

Search = Callable[[list[list[int]], int, int], list[list[int]]]
"""Sentences, pieces that a translation may have, and the beam, to the best translations."""


def serve(open_search: Callable[[SimpleNamespace], Search]) -> None:
    """Answers the requests on standard input, after a line that says it is ready."""
    job = SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text()))
    torch.set_num_threads(job.threads)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    # What a library prints must not get into the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with answers:
        search = open_search(job)
        answers.write(json.dumps({"ready": True}) + "\n")
        for line in sys.stdin:
            request = json.loads(line)
            begun = time.perf_counter()
            found = [
                search(batch, limit, request["beam"])
                for batch, limit in zip(request["batches"], request["limits"], strict=True)
            ]
            seconds = time.perf_counter() - begun
            whole = [[until(ids, job.end) for ids in batch] for batch in found]
            answers.write(json.dumps({"seconds": seconds, "batches": whole}) + "\n")


def padded(sentences: list[list[int]], padding: int) -> torch.Tensor:
    longest = max(map(len, sentences))
    return torch.tensor([ids + [padding] * (longest - len(ids)) for ids in sentences])


def until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids


class Names(NamedTuple):
    """What another tool calls the parts of the same model; {} is the number of a layer."""

    embeddings: tuple[str, ...]
    positions: tuple[str, ...]
    layers: dict[str, str]
    """encoder, decoder: what the names of their layers begin with."""
    parts: dict[str, str]
    """self_attention, feed_forward.inner, ...; with `decoder.` in front where sides differ."""
    norms: dict[str, str]
    """Those at the end of both sides."""
    projections: dict[str, str]


def carry_weights(model: torch.nn.Module, names: Names, weights: str) -> None:
    """Fills a model with the run's weights and positions, and biases that the run lacks with 0."""
    with np.load(weights) as arrays:
        found = {name: torch.from_numpy(array) for name, array in _renamed(dict(arrays), names)}
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name in found:
                tensor.copy_(found.pop(name).view_as(tensor))
            elif name.endswith(".bias"):
                tensor.zero_()
            else:
                raise KeyError(f"the run has nothing for {name}")
    if found:
        raise KeyError(f"there is no place for {', '.join(found)}")
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5


def _renamed(arrays: dict[str, Any], names: Names) -> Iterator[tuple[str, Any]]:
    """Yields the weights by the other tool's names, fused projections apart."""
    fused = {"query_key_value": ("query", "key", "value"), "key_value": ("key", "value")}
    for name, array in arrays.items():
        side, _, rest = name.partition(".")
        if name == "embedding.weight":
            yield from ((place, array) for place in names.embeddings)
        elif name == "positions":
            yield from ((place, array) for place in names.positions)
        elif side in names.norms:
            yield f"{names.norms[side]}.{rest}", array
        else:
            number, rest = rest.split(".", 1)
            layer = names.layers[side].format(number)
            part, kind = rest.rsplit(".", 1)
            ours, _, projection = part.partition(".")
            if ours.endswith("attention"):
                own = fused.get(projection, (projection,))
                place = names.parts.get(f"{side}.{ours}", names.parts.get(ours))
                for each, piece in zip(own, np.split(array, len(own)), strict=True):
                    yield f"{layer}.{place}.{names.projections[each]}.{kind}", piece
            else:
                place = names.parts.get(f"{side}.{part}", names.parts.get(part))
                yield f"{layer}.{place}.{kind}", array
