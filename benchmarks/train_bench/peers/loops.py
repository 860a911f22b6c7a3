"""Plain training loops on the same tensors: Dragoman's model, Hugging Face Marian, torch's own.

    python loops.py JOB

The loops take turns, batch by batch, in one process, so that whatever else the machine does falls
on all alike. A job with a single loop measures its memory and its start instead. Each loop imports
its library only when it is built, so that a single one pays for nothing else.
"""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from step_log import read_job
from torch import Tensor, nn
from torch.nn import functional

PADDING, START, END = 0, 2, 3
IGNORED = -100
"""Label of padding, which the loss leaves out."""
LONGEST = 512


class Pairs(NamedTuple):
    """A batch of ids; L, S and T stand for positions as in `dragoman.model`."""

    source_BS: Tensor
    is_source_BS: Tensor
    """True for tokens, False for padding."""
    target_in_BT: Tensor
    target_out_BT: Tensor
    tokens: int


Loss = Callable[[Pairs], Tensor]
"""Mean of the label-smoothed cross-entropy over the target tokens of a batch."""
Precision = Callable[[], AbstractContextManager[object]]
"""Makes the context in which a loss is computed."""


class Loop:
    def __init__(self, model: nn.Module, loss: Loss, precision: Precision) -> None:
        self.model = model.train()
        self._loss, self._precision = loss, precision
        self._optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step(self, pairs: Pairs) -> None:
        with self._precision():
            loss = self._loss(pairs)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()


def main() -> None:
    job = read_job()
    torch.set_num_threads(job.threads)
    torch.manual_seed(1)
    loops = {name: LOOPS[name](job) for name in job.loops}
    batches = [pairs_of(arrays) for arrays in read_batches(Path(job.text), job.steps)]
    with Path(job.log).open("w", buffering=1) as log:
        for number in range(job.steps):
            # Each takes every place in the order, because a loop leaves its data in the cache.
            order = job.loops[number % len(job.loops) :] + job.loops[: number % len(job.loops)]
            for name in order:
                pairs = batches[number]
                wall, cpu = time.monotonic(), time.process_time()
                loops[name].step(pairs)
                at = time.monotonic()
                spent = {"step_s": at - wall, "cpu_s": time.process_time() - cpu}
                record = {"loop": name, "at": at, "tokens": pairs.tokens, **spent}
                log.write(json.dumps(record) + "\n")
    for name, loop in loops.items():
        print(name, sum(parameter.numel() for parameter in loop.model.parameters()), "parameters")


def read_batches(text: Path, count: int) -> list[dict[str, np.ndarray]]:
    with np.load(text / "batches.npz") as arrays:
        kinds = ("source", "source_lengths", "target", "target_lengths")
        return [{kind: arrays[f"{number}.{kind}"] for kind in kinds} for number in range(count)]


def pairs_of(arrays: dict[str, np.ndarray]) -> Pairs:
    source_BS, target_BT = torch.from_numpy(arrays["source"]), torch.from_numpy(arrays["target"])
    is_source_BS = _is_token(arrays["source_lengths"], source_BS.shape[1])
    is_target_BT = _is_token(arrays["target_lengths"], target_BT.shape[1])
    target_in_BT = target_BT.roll(1, dims=1)
    target_in_BT[:, 0] = START
    target_in_BT[~is_target_BT] = PADDING
    target_out_BT = target_BT.masked_fill(~is_target_BT, IGNORED)
    return Pairs(source_BS, is_source_BS, target_in_BT, target_out_BT, int(is_target_BT.sum()))


def build_ours(job: SimpleNamespace) -> Loop:
    from dragoman.batches.collate import Batch  # noqa: PLC0415
    from dragoman.config import ModelSettings  # noqa: PLC0415
    from dragoman.model.loss import Objective  # noqa: PLC0415
    from dragoman.model.products import computing_in  # noqa: PLC0415
    from dragoman.model.transformer import Transformer  # noqa: PLC0415

    shape = {
        "preset": "transformer-small",
        "encoder_layers": job.layers,
        "decoder_layers": job.layers,
        "width": job.width,
        "heads": job.heads,
        "filter": job.filter,
        "dropout": job.residual,
        "attention_dropout": job.attention,
        "activation_dropout": job.activation,
    }
    objective = Objective(
        Transformer(ModelSettings.model_validate(shape), job.vocabulary), job.label_smoothing
    )

    def loss(pairs: Pairs) -> Tensor:
        positions_N = (pairs.target_out_BT != IGNORED).flatten().nonzero().squeeze(1)
        is_padded = not bool(pairs.is_source_BS.all())
        batch = Batch(
            source_BS=pairs.source_BS,
            source_mask=pairs.is_source_BS[:, None, None, :] if is_padded else None,
            target_in_BT=pairs.target_in_BT,
            target_out_N=pairs.target_out_BT.flatten()[positions_N],
            token_positions_N=positions_N,
        )
        smoothed: Tensor = objective(batch).smoothed / pairs.tokens
        return smoothed

    return Loop(objective, loss, partial(computing_in, job.precision, "cpu"))


def build_hugging_face(job: SimpleNamespace) -> Loop:
    model = marian_model(job, job.layers, job.layers)

    def loss(pairs: Pairs) -> Tensor:
        return marian_loss(model, pairs, job.label_smoothing)

    return Loop(model, loss, autocast(job))


def marian_model(job: SimpleNamespace, encoder_layers: int, decoder_layers: int) -> nn.Module:
    from transformers import MarianConfig, MarianMTModel  # noqa: PLC0415

    config = MarianConfig(
        vocab_size=job.vocabulary,
        d_model=job.width,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        encoder_attention_heads=job.heads,
        decoder_attention_heads=job.heads,
        encoder_ffn_dim=job.filter,
        decoder_ffn_dim=job.filter,
        activation_function="relu",
        dropout=job.residual,
        attention_dropout=job.attention,
        activation_dropout=job.activation,
        max_position_embeddings=LONGEST,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PADDING,
        decoder_start_token_id=START,
        bos_token_id=START,
        eos_token_id=END,
        forced_eos_token_id=END,
        use_cache=False,
        attn_implementation="sdpa",
    )
    model: nn.Module = MarianMTModel(config)
    return model


def marian_loss(model: nn.Module, pairs: Pairs, label_smoothing: float) -> Tensor:
    logits_BTV = model(
        input_ids=pairs.source_BS,
        attention_mask=pairs.is_source_BS.long(),
        decoder_input_ids=pairs.target_in_BT,
    ).logits
    return _cross_entropy(logits_BTV, pairs, label_smoothing)


def build_torch(job: SimpleNamespace) -> Loop:
    model = TorchTransformer(job)
    loss = partial(_torch_loss, model, job.label_smoothing)
    return Loop(model, loss, autocast(job))


def _torch_loss(model: nn.Module, label_smoothing: float, pairs: Pairs) -> Tensor:
    return _cross_entropy(model(pairs), pairs, label_smoothing)


def autocast(job: SimpleNamespace) -> Precision:
    """Returns how plain loops compute in bf16."""
    is_half = job.precision == "bf16"
    return partial(torch.autocast, "cpu", dtype=torch.bfloat16, enabled=is_half)


class TorchTransformer(nn.Module):
    def __init__(self, job: SimpleNamespace) -> None:
        super().__init__()
        self.embedding = nn.Embedding(job.vocabulary, job.width)
        nn.init.normal_(self.embedding.weight, std=job.width**-0.5)
        self.scale = job.width**0.5
        self.dropout = nn.Dropout(job.residual)
        self.transformer = nn.Transformer(
            job.width,
            job.heads,
            job.layers,
            job.layers,
            job.filter,
            job.residual,
            batch_first=True,
            norm_first=True,
        )
        # The constructor knows one share for all kinds of dropout.
        for layer in self.transformer.modules():
            if isinstance(layer, nn.MultiheadAttention):
                layer.dropout = job.attention
            if isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                layer.dropout.p = job.activation
        positions_L1 = torch.arange(LONGEST).unsqueeze(1)
        rates = 10_000.0 ** -(torch.arange(0, job.width, 2) / job.width)
        waves_LD = torch.cat([(positions_L1 * rates).sin(), (positions_L1 * rates).cos()], dim=1)
        self.register_buffer("waves_LD", waves_LD)

    def forward(self, pairs: Pairs) -> Tensor:
        length = pairs.target_in_BT.shape[1]
        hidden_BTD = self.transformer(
            self._embed(pairs.source_BS),
            self._embed(pairs.target_in_BT),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(length),
            src_key_padding_mask=~pairs.is_source_BS,
            memory_key_padding_mask=~pairs.is_source_BS,
            tgt_is_causal=True,
        )
        return functional.linear(hidden_BTD, self.embedding.weight)

    def _embed(self, tokens_BL: Tensor) -> Tensor:
        waves_LD = self.get_buffer("waves_LD")[: tokens_BL.shape[1]]
        embedded: Tensor = self.dropout(self.embedding(tokens_BL) * self.scale + waves_LD)
        return embedded


def _cross_entropy(logits_BTV: Tensor, pairs: Pairs, label_smoothing: float) -> Tensor:
    return functional.cross_entropy(
        logits_BTV.flatten(0, 1),
        pairs.target_out_BT.flatten(),
        ignore_index=IGNORED,
        label_smoothing=label_smoothing,
    )


def _is_token(lengths_B: np.ndarray, longest: int) -> Tensor:
    return torch.from_numpy(np.arange(longest) < lengths_B[:, None])


LOOPS = {"ours": build_ours, "hugging-face": build_hugging_face, "torch": build_torch}

if __name__ == "__main__":
    main()
