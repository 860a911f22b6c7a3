"""What torch.compile wins and costs with batches of a few shapes, beside eager execution.

    python benchmarks/compile.py [--rounds N] [--lengths 16 24 32 48]

One model (3 + 3 layers, width 256, filter 1024, 8,000 pieces, 7.6 million parameters) is trained
eagerly and compiled, in turns, on the same batches of one length each, without padding: the best
case for compiled shapes. Compiling is the first pass of each shape, less what a later one takes.
Nothing is asserted.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from train_bench.ending import closing_line
from train_bench.task import THREADS

from dragoman.batches.collate import Batch, collate
from dragoman.config import ModelSettings
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.shards.files import PairIds

VOCABULARY, TOKENS = 8000, 4096
SHAPE = ModelSettings(
    preset="transformer-tiny",
    encoder_layers=3,
    decoder_layers=3,
    width=256,
    heads=4,
    filter=1024,
    dropout=0.1,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 24, 32, 48])
    options = parser.parse_args()
    begun = time.monotonic()
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    objective = Objective(Transformer(SHAPE, VOCABULARY), label_smoothing=0.1)
    compiled = torch.compile(Objective(objective.model, label_smoothing=0.1), dynamic=False)
    batches = {length: batch_of(length) for length in options.lengths}
    first = {length: step_s(compiled, batch) for length, batch in batches.items()}
    for batch in batches.values():
        step_s(objective, batch)
    eager, faster = ({length: [] for length in batches} for _ in range(2))
    for _ in range(options.rounds):
        for length, batch in batches.items():
            eager[length].append(step_s(objective, batch))
            faster[length].append(step_s(compiled, batch))
    print("| length | eager, ms | compiled, ms | eager / compiled | compiling, s |")
    print("|---:|---:|---:|---:|---:|")
    for length in batches:
        ratios = [a / b for a, b in zip(eager[length], faster[length], strict=True)]
        usual = [statistics.median(each[length]) for each in (eager, faster)]
        print(
            f"| {length} | {1000 * usual[0]:,.0f} | {1000 * usual[1]:,.0f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{first[length] - usual[1]:,.1f} |"
        )
    print(f"\n{closing_line(f'{options.rounds} rounds', begun, f'{THREADS} threads')}")


def batch_of(length: int) -> Batch:
    """Returns as many pairs of this length on both sides as fill a batch."""
    draw = np.random.default_rng(length)
    pairs = [
        PairIds(*(draw.integers(4, VOCABULARY, length) for _ in range(2)))
        for _ in range(TOKENS // length)
    ]
    return collate(pairs, start=2, padding=0)


def step_s(objective: torch.nn.Module, batch: Batch) -> float:
    """Returns the seconds of forward and backward."""
    begun = time.perf_counter()
    objective(batch).smoothed.backward()
    objective.zero_grad()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
