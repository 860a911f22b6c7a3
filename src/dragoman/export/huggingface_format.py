"""A folder that plain `transformers` loads, as M2M100ForConditionalGeneration.

M2M100 is the class of our architecture: norms before each sublayer and at the end of both sides,
one scaled embedding for everything, the same positions. Its attention has biases, which are zero.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoints.folders import write_file
from dragoman.checkpoints.names import MODEL, TOKENIZER
from dragoman.checkpoints.storage import to_json
from dragoman.errors import UserError
from dragoman.export.content import Content
from dragoman.export.safetensors_format import write_tensors
from dragoman.export.tokenizer_json import tokenizer_json

LONGEST = 1024
"""Positions for which tables are made at first; transformers makes longer ones where needed."""

USAGE = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder}")
model = AutoModelForSeq2SeqLM.from_pretrained("{folder}")
found = model.generate(**tokenizer(["{example}"], return_tensors="pt"))
print(tokenizer.batch_decode(found, skip_special_tokens=True)[0])
```
"""


def write_huggingface(folder: Path, content: Content) -> None:
    """Refuses tokenizers whose padding is not the first piece: M2M100 counts positions from it."""
    tokenizer, shape = content.tokenizer, content.model
    if tokenizer.padding != 0:
        raise UserError(
            "M2M100 of Hugging Face counts positions from the id of the padding piece, which this "
            f"tokenizer has as {tokenizer.padding} instead of 0; export to another format"
        )
    special = {
        "bos_token_id": tokenizer.start,
        "decoder_start_token_id": tokenizer.start,
        "eos_token_id": tokenizer.end,
        "pad_token_id": tokenizer.padding,
    }
    config = {
        "architectures": ["M2M100ForConditionalGeneration"],
        "model_type": "m2m_100",
        "is_encoder_decoder": True,
        "vocab_size": tokenizer.size,
        "d_model": shape.width,
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "num_hidden_layers": shape.encoder_layers,
        "encoder_attention_heads": shape.heads,
        "decoder_attention_heads": shape.heads,
        "encoder_ffn_dim": shape.filter,
        "decoder_ffn_dim": shape.filter,
        "activation_function": "relu",
        "dropout": shape.dropout,
        "attention_dropout": shape.attention_dropout,
        "activation_dropout": shape.activation_dropout,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "scale_embedding": True,
        "max_position_embeddings": LONGEST,
        "tie_word_embeddings": True,
        "use_cache": True,
        "torch_dtype": "float32",
        **special,
    }
    # As our own search: done when so many hypotheses have ended.
    generation = {
        "num_beams": content.decoding.beam,
        "length_penalty": content.decoding.length_penalty,
        "early_stopping": content.decoding.beam > 1,
        "max_length": LONGEST,
        **special,
    }
    if content.decoding.beam == 1:  # transformers warns of settings that have no effect
        del generation["length_penalty"], generation["early_stopping"]
    pieces = tokenizer.pieces
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": pieces[tokenizer.start],
        "eos_token": pieces[tokenizer.end],
        "pad_token": pieces[tokenizer.padding],
        "unk_token": pieces[tokenizer.unknown],
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": LONGEST,
    }
    write_tensors(folder / MODEL, dict(renamed(content.weights, shape.width)))
    write_file(folder / TOKENIZER, [tokenizer.model])
    for name, part in (
        ("config.json", config),
        ("generation_config.json", generation),
        ("tokenizer.json", tokenizer_json(tokenizer)),
        ("tokenizer_config.json", tokenizer_config),
    ):
        write_file(folder / name, [to_json(part)])


def renamed(weights: dict[str, Tensor], width: int) -> Iterator[tuple[str, Tensor]]:
    """Yields our weights by M2M100's names, fused projections apart, with biases of zero."""
    embedding = weights["embedding.weight"]
    # Once as the input and once as the output: whichever is read first, the other is tied to it.
    yield "model.shared.weight", embedding
    yield "lm_head.weight", embedding
    zeros = torch.zeros(width)
    for name, weight in weights.items():
        side, _, rest = name.partition(".")
        if side in ("encoder_norm", "decoder_norm"):
            yield f"model.{side.removesuffix('_norm')}.layer_norm.{rest}", weight
        elif side in ("encoder", "decoder"):
            number, part, tail = rest.split(".", 2)
            layer = f"model.{side}.layers.{number}"
            if part in _ATTENTIONS:
                attention = f"{layer}.{_ATTENTIONS[part]}"
                projections = _PROJECTIONS[tail.removesuffix(".weight")]
                for projection, own in zip(projections, torch.split(weight, width), strict=True):
                    yield f"{attention}.{projection}.weight", own
                    yield f"{attention}.{projection}.bias", zeros
            else:
                ours, _, kind = f"{part}.{tail}".rpartition(".")
                yield f"{layer}.{_OTHERS[ours]}.{kind}", weight


_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_PROJECTIONS = {
    "query_key_value": ("q_proj", "k_proj", "v_proj"),
    "key_value": ("k_proj", "v_proj"),
    "query": ("q_proj",),
    "output": ("out_proj",),
}
_OTHERS = {
    "self_norm": "self_attn_layer_norm",
    "cross_norm": "encoder_attn_layer_norm",
    "feed_forward.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
