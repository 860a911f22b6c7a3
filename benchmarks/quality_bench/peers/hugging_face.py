"""A plain training loop around MarianMTModel of Hugging Face, with BLEU on validation.

    python hugging_face.py train JOB
    python hugging_face.py translate JOB

The first trains until SIGTERM, with a line of JSON for each step and each evaluation, and keeps the
weights with the highest BLEU; the second translates the test set with them. Model, loss and padding
are those of `loops.py` in the benchmark of training speed, which must be on PYTHONPATH.
"""

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import sacrebleu
import sentencepiece
import torch
from loops import END, PADDING, START, Pairs, marian_loss, marian_model, pairs_of
from torch import nn

EVALUATION_SENTENCES = 128
"""Translated at once."""


class Corpus:
    """Pairs of ids, each ending with the end piece."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            tokens, bounds = arrays["tokens"], arrays["bounds"]
        sequences = np.split(tokens, bounds[1:-1])
        self.sources, self.targets = sequences[0::2], sequences[1::2]

    def pairs(self, numbers: np.ndarray) -> Pairs:
        arrays = {}
        for side, sequences in (("source", self.sources), ("target", self.targets)):
            rows = [sequences[number] for number in numbers]
            arrays[side] = padded(rows)
            arrays[f"{side}_lengths"] = np.array([len(row) for row in rows])
        return pairs_of(arrays)

    def batches(self, tokens: int, seed: int) -> Iterator[np.ndarray]:
        """Yields pairs of similar length, with so many target tokens on average, without end."""
        random = np.random.default_rng(seed)
        source_lengths = np.array([len(ids) for ids in self.sources])
        target_lengths = np.array([len(ids) for ids in self.targets])
        while True:
            order = random.permutation(len(self.sources))
            by_length = np.lexsort((source_lengths[order], target_lengths[order]))
            order = order[by_length]
            batch_of_pair = (np.cumsum(target_lengths[order]) - 1) // tokens
            batches = np.split(order, np.flatnonzero(np.diff(batch_of_pair)) + 1)
            for number in random.permutation(len(batches)):
                yield batches[number]


def main() -> None:
    job = SimpleNamespace(**json.loads(Path(sys.argv[2]).read_text()))
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    model = marian_model(job, job.encoder_layers, job.decoder_layers)
    if sys.argv[1] == "train":
        train(job, model)
    else:
        model.load_state_dict(torch.load(job.weights, weights_only=True))
        translations = translate(job, model, job.test_source, beam=job.beam)
        Path(job.translations).write_text("".join(f"{line}\n" for line in translations))


def train(job: SimpleNamespace, model: nn.Module) -> None:
    is_asked_to_end = False

    def end(*_: object) -> None:
        nonlocal is_asked_to_end
        is_asked_to_end = True

    signal.signal(signal.SIGTERM, end)
    print(sum(parameter.numel() for parameter in model.parameters()), "parameters", flush=True)
    corpus = Corpus(Path(job.corpus))
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=job.betas, eps=job.epsilon, weight_decay=0.0, fused=True
    )
    best = -1.0
    with Path(job.log).open("w", buffering=1) as log:
        for step, numbers in enumerate(corpus.batches(job.tokens_per_update, job.seed), start=1):
            begin = time.monotonic()
            model.train()
            pairs = corpus.pairs(numbers)
            for group in optimizer.param_groups:
                group["lr"] = rate(job, step)
            marian_loss(model, pairs, job.label_smoothing).backward()
            nn.utils.clip_grad_norm_(model.parameters(), job.clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            write(log, kind="step", begin=begin, step=step, tokens=pairs.tokens)
            if is_asked_to_end or step % job.evaluate_every == 0:
                bleu = evaluate(job, model, log, step)
                if bleu > best:
                    best = bleu
                    torch.save(model.state_dict(), job.weights)
            if is_asked_to_end:
                return


def rate(job: SimpleNamespace, step: int) -> float:
    rise, fall = step / job.warmup_steps, (job.warmup_steps / step) ** 0.5
    return float(job.peak * min(rise, fall))


def evaluate(job: SimpleNamespace, model: nn.Module, log: IO[str], step: int) -> float:
    begin = time.monotonic()
    references = read_lines(job.validation_target)
    translations = translate(job, model, job.validation_source, beam=1)
    metric = sacrebleu.BLEU(trg_lang=job.target_language, force=True)
    bleu: float = metric.corpus_score(translations, [references]).score
    write(log, kind="evaluation", begin=begin, step=step, bleu=bleu)
    return bleu


def translate(job: SimpleNamespace, model: Any, source: str, beam: int) -> list[str]:
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=job.tokenizer)
    sequences = tokenizer.encode(read_lines(source), out_type=int, add_eos=True)
    order = sorted(range(len(sequences)), key=lambda number: len(sequences[number]))
    translations = [""] * len(sequences)
    model.eval()
    for begin in range(0, len(order), EVALUATION_SENTENCES // beam):
        numbers = order[begin : begin + EVALUATION_SENTENCES // beam]
        source_BS = torch.from_numpy(padded([np.array(sequences[number]) for number in numbers]))
        with torch.inference_mode():
            ids_BT = model.generate(
                input_ids=source_BS,
                attention_mask=(source_BS != PADDING).long(),
                num_beams=beam,
                do_sample=False,
                length_penalty=job.length_penalty,
                max_new_tokens=int(job.max_length_factor * source_BS.shape[1]) + 10,
                use_cache=True,
            )
        special = (PADDING, START, END)
        rows = [[i for i in row if i not in special] for row in ids_BT.tolist()]
        for number, text in zip(numbers, tokenizer.decode(rows), strict=True):
            translations[number] = text
    return translations


def padded(rows: list[np.ndarray]) -> np.ndarray:
    filled = np.full((len(rows), max(map(len, rows))), PADDING, dtype=np.int64)
    for ids, row in zip(rows, filled, strict=True):
        row[: len(ids)] = ids
    return filled


def read_lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def write(log: IO[str], **record: object) -> None:
    log.write(json.dumps({**record, "end": time.monotonic()}) + "\n")


if __name__ == "__main__":
    main()
