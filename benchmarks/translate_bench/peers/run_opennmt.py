"""Translates with OpenNMT-py: python run_opennmt.py JOB. Runs in OpenNMT-py's own environment."""

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from onmt.inputters.inputter import dict_to_vocabs
from onmt.model_builder import build_base_model
from onmt.opts import train_opts, translate_opts
from onmt.translate.translator import build_translator
from onmt.utils.parse import ArgumentParser
from serving import Names, Search, carry_weights, padded, serve

NAMES = Names(
    embeddings=(
        "encoder.embeddings.make_embedding.emb_luts.0.weight",
        "decoder.embeddings.make_embedding.emb_luts.0.weight",
        "generator.weight",
    ),
    positions=(
        "encoder.embeddings.make_embedding.pe.pe",
        "decoder.embeddings.make_embedding.pe.pe",
    ),
    layers={"encoder": "encoder.transformer.{}", "decoder": "decoder.transformer_layers.{}"},
    parts={
        "self_attention": "self_attn",
        "cross_attention": "context_attn",
        "encoder.self_norm": "layer_norm",
        "decoder.self_norm": "layer_norm_1",
        "cross_norm": "layer_norm_2",
        "feed_forward.norm": "feed_forward.layer_norm",
        "feed_forward.inner": "feed_forward.w_1",
        "feed_forward.outer": "feed_forward.w_2",
    },
    norms={"encoder_norm": "encoder.layer_norm", "decoder_norm": "decoder.layer_norm"},
    projections={
        "query": "linear_query",
        "key": "linear_keys",
        "value": "linear_values",
        "output": "final_linear",
    },
)


def open_search(job: SimpleNamespace) -> Search:
    model = Path(job.scratch) / "opennmt.pt"
    if not model.exists():
        write_model(job, model)
    # OpenNMT-py keeps its options in a checkpoint, which torch refuses to load since 2.6.
    torch.serialization.add_safe_globals([argparse.Namespace])
    parser = ArgumentParser()
    translate_opts(parser)
    words = ["-model", str(model), "-src", "none", "-output", "/dev/null", "-max_length_ratio", "0"]
    words += ["-length_penalty", "avg", "-alpha", str(job.length_penalty)]
    translator = build_translator(parser.parse_args(words), device_id=-1, report_score=False)

    def search(sentences: list[list[int]], limit: int, beam: int) -> list[list[int]]:
        translator.beam_size, translator.max_length = beam, limit
        lengths = torch.tensor([len(ids) for ids in sentences])
        batch = {"src": padded(sentences, job.padding).unsqueeze(2), "srclen": lengths}
        found = translator.translate_batch(batch, attn_debug=False)
        return [best[0].tolist() for best in found["predictions"]]

    return search


def write_model(job: SimpleNamespace, path: Path) -> None:
    """Writes the run's model as a checkpoint of OpenNMT-py."""
    pieces = list(job.pieces)
    pieces[job.padding] = "<blank>"
    vocabulary = {
        "src": pieces,
        "tgt": pieces,
        "data_task": "seq2seq",
        "decoder_start_token": pieces[job.start],
    }
    parser = ArgumentParser()
    train_opts(parser)
    # Data and a place for checkpoints are required, and have no part in a model.
    options = parser.parse_args(["-data", "{}", "-save_model", "none", "-src_vocab", "none"])
    vars(options).update(settings(job))
    ArgumentParser.update_model_opts(options)
    model = build_base_model(options, dict_to_vocabs(vocabulary))
    carry_weights(model, NAMES, job.weights)
    weights = model.state_dict()
    own = {name: tensor for name, tensor in weights.items() if not name.startswith("generator.")}
    generator = {name: weights[f"generator.{name}"] for name in ("weight", "bias")}
    content = {"model": own, "generator": generator, "vocab": vocabulary, "opt": options}
    torch.save(content, path)


def settings(job: SimpleNamespace) -> dict[str, Any]:
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": job.encoder_layers,
        "dec_layers": job.decoder_layers,
        "hidden_size": job.width,
        "word_vec_size": job.width,
        "heads": job.heads,
        "transformer_ff": job.filter,
        "norm_eps": 1e-5,
        "add_ffnbias": True,
        "position_encoding": True,
        "position_encoding_type": "SinusoidalConcat",
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "dropout": [0.0],
        "attention_dropout": [0.0],
        "optim": "adam",
    }


if __name__ == "__main__":
    serve(open_search)
