"""How fast the 4-bit code of the wire is on one core, and how far off, by the size of a tensor.

    python benchmarks/wire.py [--repeats N]

Gigabytes are those of the fp32 values. Seconds are of processor time, the least of all repeats, so
that other programs on the machine disturb little; where two of them share a core they still do.
Copying the values is measured beside it, and bf16. Nothing is asserted.
"""

import argparse
import platform
import time
from collections.abc import Callable

import torch

from dragoman.sync.wire import four_bit

SIZES = (100_000, 1_000_000, 10_000_000, 60_000_000)
DEVIATION = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="of the largest; more of others")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, 1 thread")
    print("GB/s of fp32, of processor time\n")
    print("| elements | encode | decode | to bf16 | from bf16 | copy | error 4bit | error bf16 |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in SIZES:
        print(_row(size, min(100, repeats * SIZES[-1] // size)))


def _row(size: int, repeats: int) -> str:
    values = DEVIATION * torch.randn(size, generator=torch.Generator().manual_seed(1))
    codes = torch.zeros(four_bit.code_bytes(size), dtype=torch.uint8)
    table, decoded = torch.zeros(four_bit.BINS), torch.zeros(size)
    halves, back = torch.zeros(size, dtype=torch.bfloat16), torch.zeros(size)
    copied = torch.zeros(size)
    works: list[Callable[[], object]] = [
        lambda: four_bit.encode(values, codes, table),
        lambda: four_bit.decode(codes, table, decoded),
        lambda: halves.copy_(values),
        lambda: back.copy_(halves),
        lambda: copied.copy_(values),
    ]
    least = [float("inf")] * len(works)
    for _ in range(repeats):
        for index, work in enumerate(works):
            begun = time.thread_time()
            work()
            least[index] = min(least[index], time.thread_time() - begun)
    rates = " | ".join(f"{4 * size / seconds / 1e9:.2f}" for seconds in least)
    errors = " | ".join(
        f"{float((each - values).square().mean().sqrt()) / DEVIATION:.4f}"
        for each in (decoded, back)
    )
    return f"| {size:,} | {rates} | {errors} |"


if __name__ == "__main__":
    main()
