"""Encodes a tensor as four bits a value, and decodes it.

The range of three standard deviations to both sides of the mean is cut into 16 bins of equal
width; what lies beyond belongs to the outermost ones. A value's code is the number of its bin, two
codes share a byte, and the table that goes with them has the mean of each bin's own members. So the
mean of the tensor survives, and a tensor of one value is exact.

Statistics are sums of chunks that torch never splits between threads: the same values have the
same codes whatever the number of threads.
"""

import math

import torch
from torch import Tensor

BINS = 16
RANGE_SIGMAS = 6.0

# Chunks stay in a CPU's second-level cache. Those that are summed are smaller than what torch
# splits between threads (32,768 elements). On a GPU each operation has to start a kernel.
_CPU_SUM_CHUNK = 32_704
_CPU_CHUNK = 2 * _CPU_SUM_CHUNK
_GPU_CHUNK = 1 << 24
# Below this share of the mean square, or below this mean square, sums in fp32 have too few digits
# left for the variance.
_LEAST_SHARE = 1e-3
_LEAST_SQUARE = 1e-30


def code_bytes(elements: int) -> int:
    """Returns how many bytes the codes of so many elements take; half a byte may be unused."""
    return (elements + 1) // 2


def encode(values: Tensor, codes: Tensor, table: Tensor) -> bool:
    """Encodes a flat fp32 tensor into `codes` (as many uint8 as `code_bytes` says) and `table`.

    The table has 16 values in fp32. Those of bins without members are zero.
    Returns False, and leaves both undefined, where values are not finite or so large (above about
    1e17) that their squares are not.
    """
    elements = values.numel()
    if elements == 0:
        table.zero_()
        return True
    statistics = _mean_and_deviation(values)
    if statistics is None:
        return False
    mean, deviation, in_double = statistics
    bins_per_unit = BINS / (RANGE_SIGMAS * deviation) if deviation > 0.0 else 0.0
    offset = torch.tensor(
        BINS / 2 if in_double else BINS / 2 - mean * bins_per_unit,
        dtype=torch.float32,
        device=values.device,
    )
    # Buffers are made once: fresh memory costs a page fault every 4 kB.
    chunk_size, device = min(_chunk_size(values), elements), values.device
    in_doubles = torch.empty(chunk_size, dtype=torch.float64, device=device)
    scaled = torch.empty(chunk_size, device=device)
    # torch converts to int8 in a quarter of the time that uint8 takes (2026-11, AVX-512).
    bins = torch.zeros(2 * code_bytes(chunk_size), dtype=torch.int8, device=device)
    shifted = torch.empty(code_bytes(chunk_size), dtype=torch.int16, device=device)
    sums = torch.zeros(BINS, dtype=torch.float64, device=device)
    begin = 0
    for chunk in torch.split(values, chunk_size):
        size, packed_size = chunk.numel(), code_bytes(chunk.numel())
        if size < chunk_size:
            in_doubles, scaled = in_doubles[:size], scaled[:size]
            bins, shifted = bins[: 2 * packed_size].zero_(), shifted[:packed_size]
        in_doubles.copy_(chunk)
        if in_double:
            scaled.copy_((in_doubles - mean) * bins_per_unit).add_(offset)
        else:
            torch.add(offset, chunk, alpha=bins_per_unit, out=scaled)
        bin_of = bins[:size]
        bin_of.copy_(scaled.clamp_(0.0, BINS - 1.0))
        sums += torch.bincount(bin_of, weights=in_doubles, minlength=BINS)
        # On a little-endian machine, a pair of bins is first + 256 * second.
        pair = bins.view(torch.int16)
        torch.bitwise_right_shift(pair, 4, out=shifted)
        codes[begin : begin + packed_size].copy_(shifted.bitwise_or_(pair))
        begin += packed_size
    pairs = torch.bincount(codes, minlength=BINS * BINS).view(BINS, BINS)
    counts = pairs.sum(0) + pairs.sum(1)
    counts[0] -= elements % 2  # the half of the last byte that is unused
    table.copy_(sums / counts.clamp_(min=1))
    return True


def decode(codes: Tensor, table: Tensor, values: Tensor, add: bool = False) -> None:
    """Writes what codes stand for into a flat fp32 tensor, or adds it.

    There may be one code more than values.
    """
    byte = torch.arange(BINS * BINS, device=codes.device)
    two_values = torch.stack((table[byte % BINS], table[byte // BINS]), dim=1)
    # Copied as one 64-bit word, since only elements are looked up fast.
    words = two_values.view(torch.int64).flatten()
    chunk_size = 2 * code_bytes(min(_chunk_size(codes), max(values.numel(), 1)))
    decoded = torch.empty(chunk_size, device=codes.device)
    for begin in range(0, values.numel(), chunk_size):
        target = values[begin : begin + chunk_size]
        size = target.numel()
        packed = codes[begin // 2 : begin // 2 + code_bytes(size)]
        found = decoded[: 2 * packed.numel()]
        torch.index_select(words, 0, packed.int(), out=found.view(torch.int64))
        if add:
            target.add_(found[:size])
        else:
            target.copy_(found[:size])


def _mean_and_deviation(values: Tensor) -> tuple[float, float, bool] | None:
    """Returns both, and whether fp32 was not enough for them; None if values are not finite."""
    elements = values.numel()
    chunks = torch.split(values, _CPU_SUM_CHUNK if values.device.type == "cpu" else _GPU_CHUNK)
    sums = torch.stack([chunk.sum(dtype=torch.float32) for chunk in chunks])
    norms = torch.stack([torch.linalg.vector_norm(chunk, dtype=torch.float32) for chunk in chunks])
    total, squares = torch.stack((sums.double().sum(), norms.double().square().sum())).tolist()
    if not (math.isfinite(total) and math.isfinite(squares)):
        return None
    mean, mean_square = total / elements, squares / elements
    variance = mean_square - mean * mean
    if mean_square >= _LEAST_SQUARE and variance >= _LEAST_SHARE * mean_square:
        return mean, math.sqrt(variance), False
    mean = math.fsum(chunk.double().sum().item() for chunk in chunks) / elements
    norm = math.hypot(*(torch.linalg.vector_norm(chunk.double() - mean).item() for chunk in chunks))
    return mean, norm / math.sqrt(elements), True


def _chunk_size(tensor: Tensor) -> int:
    return _CPU_CHUNK if tensor.device.type == "cpu" else _GPU_CHUNK
