"""What communication costs processors: coding values, and moving and adding bytes. Pure."""

from typing import NamedTuple

from dragoman.distributed.wire_bytes import WireKind, is_gathered
from dragoman.forecast.layout import FP32_BYTES

OUTER_PASSES = 9
"""Reads or writes of a fragment's weights by the outer step: a copy and a difference when it
departs, momentum, sum and mixing when it arrives (`sync/outer.py`)."""


class Processor(NamedTuple):
    """Rates are fp32 bytes a second of one worker."""

    to_bf16: float
    from_bf16: float
    encode_4bit: float
    decode_4bit: float
    copy: float
    communication_s_per_byte: float
    """Time of the computing cores for each byte that a rank sends and receives in a collective:
    TCP, copies and sums. 0: they have no part in it."""


# Measured with `make bench-wire` on an Intel Xeon with AVX-512, one thread, 10 to 60 million
# elements, November 2026 (docs/sync.md).
CPU = Processor(7.5e9, 8e9, 1.05e9, 3.9e9, 6.4e9, communication_s_per_byte=1.1e-9)
"""The last one is of gloo's all-reduces of 1 to 28 MiB over loopback by 2 and 3 ranks: processor
time of a rank over the bytes it sent, 0.7 to 2.4 ns, on an AMD EPYC, November 2026."""
# A memory of 300 GB/s, as of a T4, read and written once; coding in a few passes. Not measured.
GPU = Processor(1e11, 1e11, 2e10, 5e10, 1.5e11, communication_s_per_byte=0.0)


def sum_in_bf16_s(elements: int, ranks: int, processor: Processor) -> float:
    """Returns what rounding and adding a bucket takes (`sync/compressed.py`).

    All is rounded, one slice of every rank is read and added, its sum is rounded, all is read.
    """
    size = FP32_BYTES * elements
    rounding = size * (1 + 1 / ranks) / processor.to_bf16
    return rounding + 2 * size / processor.from_bf16


def average_s(wire: WireKind, elements: int, tensors: int, ranks: int, cpu: Processor) -> float:
    """Returns what coding and averaging a fragment takes (`sync/wire/averaging.py`)."""
    size = FP32_BYTES * elements
    encode, decode = {
        "fp32": (cpu.copy, cpu.copy),
        "bf16": (cpu.to_bf16, cpu.from_bf16),
        "4bit": (cpu.encode_4bit, cpu.decode_4bit),
    }[wire]
    if is_gathered(wire, elements, tensors, ranks):
        return size / encode + ranks * size / decode
    return size * (1 + 1 / ranks) / encode + 2 * size / decode


def outer_step_s(elements: int, processor: Processor) -> float:
    """Returns what departing and arriving of a fragment take where training computes."""
    return OUTER_PASSES * FP32_BYTES * elements / (2 * processor.copy)
