"""Translates with JoeyNMT: python run_joeynmt.py JOB. Runs in JoeyNMT's own environment."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import Model, build_model
from joeynmt.search import search as search_batch
from joeynmt.vocabulary import Vocabulary
from serving import Names, Search, carry_weights, padded, serve

NAMES = Names(
    embeddings=("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight"),
    positions=("encoder.pe.pe", "decoder.pe.pe"),
    layers={"encoder": "encoder.layers.{}", "decoder": "decoder.layers.{}"},
    parts={
        "encoder.self_attention": "src_src_att",
        "decoder.self_attention": "trg_trg_att",
        "cross_attention": "src_trg_att",
        "encoder.self_norm": "layer_norm",
        "decoder.self_norm": "x_layer_norm",
        "cross_norm": "dec_layer_norm",
        "feed_forward.norm": "feed_forward.layer_norm",
        "feed_forward.inner": "feed_forward.pwff_layer.0",
        "feed_forward.outer": "feed_forward.pwff_layer.3",
    },
    norms={"encoder_norm": "encoder.layer_norm", "decoder_norm": "decoder.layer_norm"},
    projections={
        "query": "q_layer",
        "key": "k_layer",
        "value": "v_layer",
        "output": "output_layer",
    },
)


def open_search(job: SimpleNamespace) -> Search:
    # Its vocabulary begins with these four, in this order.
    special = [job.unknown, job.padding, job.start, job.end]
    ours = [*special, *(piece for piece in range(len(job.pieces)) if piece not in special)]
    theirs = {piece: number for number, piece in enumerate(ours)}
    model = load_model(job, ours)

    def search(sentences: list[list[int]], limit: int, beam: int) -> list[list[int]]:
        source = padded([[theirs[piece] for piece in ids] for ids in sentences], model.pad_index)
        batch = Batch(
            *(source, torch.tensor([len(ids) for ids in sentences]), None, None, None),
            indices=torch.arange(len(sentences)),
            device=torch.device("cpu"),
            pad_index=model.pad_index,
            eos_index=model.eos_index,
            is_train=False,
        )
        found, _, _ = search_batch(model, batch, limit, beam, job.length_penalty)
        return [[ours[piece] for piece in row] for row in found.tolist()]

    return search


def load_model(job: SimpleNamespace, ours: list[int]) -> Model:
    """Loads the run's weights as JoeyNMT's, which are written at the first time."""
    tokens = [job.pieces[piece] for piece in ours]
    names = ("unk", "pad", "bos", "eos")
    special = {f"{name}_token": tokens[number] for number, name in enumerate(names)}
    special |= {f"{name}_id": number for number, name in enumerate(names)}
    vocabulary = Vocabulary(tokens, SimpleNamespace(**special, sep_token=None, lang_tags=[]))
    model = build_model(settings(job), vocabulary, vocabulary)
    path = Path(job.scratch) / "joeynmt.pt"
    if not path.exists():
        carry_weights(model, NAMES, job.weights)
        with torch.no_grad():
            model.src_embed.lut.weight.copy_(model.src_embed.lut.weight[ours])
        torch.save({"model_state": model.state_dict()}, path)
    model.load_state_dict(torch.load(path)["model_state"])
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5  # JoeyNMT has no option for it
    return model.eval()


def settings(job: SimpleNamespace) -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_heads": job.heads,
        "hidden_size": job.width,
        "ff_size": job.filter,
        "dropout": 0.0,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": job.width, "scale": True, "dropout": 0.0},
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**side, "num_layers": job.encoder_layers},
        "decoder": {**side, "num_layers": job.decoder_layers},
    }


if __name__ == "__main__":
    serve(open_search)
