"""Averages lists of tensors over ranks, by one of three kinds of wire.

What travels is bytes: of fp32 and bf16 the values themselves, of 4bit codes and their tables. The
codes of all tensors stand one behind the other, and slices of them are cut by bytes, anywhere in a
tensor. Sums are taken in fp32 and in the order of the ranks, never in that of arrival, and without
products that some machines fuse into the sum and others do not. So the mean has the same bits on
all ranks. Of fp32 and bf16 it does not depend on how tensors are grouped into lists; of 4bit,
scattered, it does, since each slice is encoded again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.distributed.wire_bytes import FACTS_BYTES, TABLE_BYTES, WireKind, is_gathered
from dragoman.sync.wire import four_bit

_ALIGNMENT = 8
"""Messages and slices begin at multiples of so many bytes, so that all types can be read there."""
_DTYPES: dict[WireKind, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Average:
    """The mean over ranks; everything but `sent_bytes` is the same on all of them."""

    tensors: list[Tensor] | None
    """In fp32, with the shapes that came in. None if any rank had values that are not finite."""
    non_finite_ranks: list[int]
    """Ranks that had NaN, infinity, or values above about 1e17, whose squares overflow."""
    weights: list[float]
    """Of all ranks, as they were used."""
    sent_bytes: int
    """Handed over for other ranks by this rank, without packet headers."""


def average(
    tensors: Sequence[Tensor],
    kind: WireKind,
    weight: float = 1.0,
    process_group: dist.ProcessGroup | None = None,
) -> Average:
    """Returns the mean over ranks, weighted by what each rank gives. Collective: every rank must
    call, with the same shapes in the same order, on one device.

    Alone, nothing travels and nothing is rounded. Raises ValueError, on all ranks, if a weight is
    negative or not finite, or if all are zero. To average beside other collectives, for example
    from a thread, give it a process group of its own.
    """
    alone = not dist.is_initialized()
    ranks = 1 if alone else dist.get_world_size(process_group)
    rank = 0 if alone else dist.get_rank(process_group)
    shapes = [tensor.shape for tensor in tensors]
    flat = [tensor.detach().reshape(-1).float() for tensor in tensors]
    layout = _Layout(kind, tuple(values.numel() for values in flat))
    device = flat[0].device if flat else torch.device("cpu")
    if ranks == 1:
        finite = _is_finite(flat)
        _check_weights([weight])
        means = [values.clone().view(shape) for values, shape in zip(flat, shapes, strict=True)]
        return Average(means if finite else None, [] if finite else [0], [weight], 0)

    codes = torch.zeros(layout.code_bytes, dtype=torch.uint8, device=device)
    tables = torch.zeros(layout.tensors, layout.table_values, device=device)
    finite = _encode(kind, flat, codes, tables)
    facts = torch.tensor([weight, float(finite)], device=device)
    exchange = _Exchange(ranks, rank, process_group)
    gathers = is_gathered(kind, layout.elements, layout.tensors, ranks)
    parts = layout.slices(1 if gathers else ranks)
    messages = [
        part.message(
            facts,
            tables[[piece.tensor for piece in part.pieces]],
            codes[part.begin : part.end],
        )
        for part in parts
    ]
    if gathers:
        own = parts[0]
        received = exchange.gather(messages[0], own.message_bytes)
    else:
        own = parts[rank]
        received = exchange.scatter(messages, own.message_bytes)
    all_facts = torch.stack([_values(message, 0, 2) for message in received]).tolist()
    weights = [float(fact[0]) for fact in all_facts]
    non_finite_ranks = [index for index, fact in enumerate(all_facts) if fact[1] != 1.0]
    _check_weights(weights)
    # All ranks have all facts, so that all of them leave here, or none does.
    if non_finite_ranks:
        return Average(None, non_finite_ranks, weights, exchange.sent_bytes)

    mean = torch.zeros(layout.elements, device=device)
    largest = max(weights)
    shares = [each / largest for each in weights]  # 1.0, and so exact, where all are equal
    for message, share in zip(received, shares, strict=True):
        own.add(message, share, mean)
    mean.div_(math.fsum(shares))
    if not gathers:
        mean = _share_slices(parts, rank, facts, mean, exchange)
    means = [
        values.view(shape)
        for values, shape in zip(torch.split(mean, list(layout.sizes)), shapes, strict=True)
    ]
    return Average(means, [], weights, exchange.sent_bytes)


@dataclass(frozen=True)
class _Layout:
    """Where the codes of each tensor stand."""

    kind: WireKind
    sizes: tuple[int, ...]

    @property
    def elements(self) -> int:
        return sum(self.sizes)

    @property
    def tensors(self) -> int:
        return len(self.sizes)

    @property
    def table_values(self) -> int:
        return TABLE_BYTES[self.kind] // 4

    @property
    def code_bytes(self) -> int:
        return sum(map(self.bytes_of, self.sizes))

    def bytes_of(self, elements: int) -> int:
        return _code_bytes(self.kind, elements)

    def elements_in(self, code_bytes: int) -> int:
        if self.kind == "4bit":
            return code_bytes * 2
        return code_bytes // _DTYPES[self.kind].itemsize

    def slices(self, ranks: int) -> list["_Part"]:
        """Returns one part for each rank, of equally many bytes but for the last ones."""
        size = _aligned(-(-self.code_bytes // ranks))
        bounds = [min(rank * size, self.code_bytes) for rank in range(ranks + 1)]
        return [_Part(self, begin, end) for begin, end in pairwise(bounds)]


@dataclass(frozen=True)
class _Piece:
    """What a part has of one tensor."""

    tensor: int
    code_begin: int
    """Counted from the beginning of the part."""
    code_end: int
    begin: int
    """The first of its elements, counted through all tensors."""
    end: int


@dataclass(frozen=True)
class _Part:
    """A range of the codes of all tensors, with a table for each tensor that it touches."""

    layout: _Layout
    begin: int
    end: int

    @cached_property
    def pieces(self) -> list[_Piece]:
        layout, found = self.layout, []
        code_begins = accumulate(map(layout.bytes_of, layout.sizes), initial=0)
        begins = accumulate(layout.sizes, initial=0)
        for tensor, (size, code_begin, begin) in enumerate(
            zip(layout.sizes, code_begins, begins, strict=False)
        ):
            first = max(self.begin - code_begin, 0)
            last = min(self.end - code_begin, layout.bytes_of(size))
            if first < last:
                piece = _Piece(
                    tensor,
                    code_begin + first - self.begin,
                    code_begin + last - self.begin,
                    begin + layout.elements_in(first),
                    begin + min(layout.elements_in(last), size),
                )
                found.append(piece)
        return found

    @property
    def message_bytes(self) -> int:
        tables_bytes = len(self.pieces) * TABLE_BYTES[self.layout.kind]
        return _aligned(FACTS_BYTES + tables_bytes + self.end - self.begin)

    def message(self, facts: Tensor, tables: Tensor, codes: Tensor) -> Tensor:
        """Returns the bytes that travel, of this part's tables and codes."""
        numbers = torch.cat((facts, tables.flatten())).view(torch.uint8)
        padding = codes.new_zeros(self.message_bytes - numbers.numel() - codes.numel())
        return torch.cat((numbers, codes, padding))

    def add(self, message: Tensor, share: float, sums: Tensor) -> None:
        """Adds a share of what a message stands for to sums of all elements."""
        kind, pieces = self.layout.kind, self.pieces
        if not pieces:
            return
        tables = _values(message, FACTS_BYTES, len(pieces) * self.layout.table_values)
        codes_begin = FACTS_BYTES + len(pieces) * TABLE_BYTES[kind]
        codes = message[codes_begin : codes_begin + self.end - self.begin]
        if kind != "4bit":
            values = codes.view(_DTYPES[kind]).float()
            # Multiplied before it is added: a fused sum has other bits, on some machines.
            values = values if share == 1.0 else values * share
            sums[pieces[0].begin : pieces[-1].end].add_(values)
            return
        for piece, table in zip(pieces, tables.view(len(pieces), -1), strict=True):
            four_bit.decode(
                codes[piece.code_begin : piece.code_end],
                table * share,
                sums[piece.begin : piece.end],
                add=True,
            )


class _Exchange:
    """Sends messages, and counts the bytes that this rank hands over for others."""

    def __init__(self, ranks: int, rank: int, process_group: dist.ProcessGroup | None) -> None:
        self._ranks, self._rank, self._process_group = ranks, rank, process_group
        self.sent_bytes = 0

    def gather(self, message: Tensor, size: int) -> list[Tensor]:
        """Sends one message to all; returns one from each, padded to so many bytes."""
        received = message.new_empty(self._ranks * size)
        padding = message.new_zeros(size - message.numel())
        dist.all_gather_single(received, torch.cat((message, padding)), group=self._process_group)
        self.sent_bytes += (self._ranks - 1) * size
        return list(torch.split(received, size))

    def scatter(self, messages: list[Tensor], size: int) -> list[Tensor]:
        """Sends each rank its message; returns one from each, of so many bytes."""
        sizes = [message.numel() for message in messages]
        received = messages[0].new_empty(self._ranks * size)
        dist.all_to_all_single(
            received,
            torch.cat(messages),
            output_split_sizes=[size] * self._ranks,
            input_split_sizes=sizes,
            group=self._process_group,
        )
        self.sent_bytes += sum(sizes) - sizes[self._rank]
        return list(torch.split(received, size))


def _encode(kind: WireKind, flat: list[Tensor], codes: Tensor, tables: Tensor) -> bool:
    """Fills codes and tables with those of flat tensors; returns whether all are finite."""
    if kind != "4bit" and not _is_finite(flat):
        return False
    begin = 0
    for values, table in zip(flat, tables, strict=True):
        end = begin + _code_bytes(kind, values.numel())
        if kind != "4bit":
            codes[begin:end].view(_DTYPES[kind]).copy_(values)
        elif not four_bit.encode(values, codes[begin:end], table):
            return False
        begin = end
    return True


def _share_slices(
    parts: list[_Part], rank: int, facts: Tensor, mean: Tensor, exchange: _Exchange
) -> Tensor:
    """Sends the mean of this rank's slice to all; returns the means of all slices, as sent.

    They are sent by the same kind again: fp32 as they are, bf16 rounded once, 4bit with a table for
    each piece of a tensor.
    """
    own = parts[rank]
    kind = own.layout.kind
    codes = torch.zeros(own.end - own.begin, dtype=torch.uint8, device=mean.device)
    tables = torch.zeros(len(own.pieces), own.layout.table_values, device=mean.device)
    _encode(kind, [mean[piece.begin : piece.end] for piece in own.pieces], codes, tables)
    size = max(part.message_bytes for part in parts)
    received = exchange.gather(own.message(facts, tables, codes), size)
    shared = torch.zeros_like(mean)
    for part, message in zip(parts, received, strict=True):
        part.add(message, 1.0, shared)
    return shared


def _is_finite(flat: list[Tensor]) -> bool:
    """Returns whether the squares of all values are finite in fp32."""
    if not flat:
        return True
    norms = torch.stack([torch.linalg.vector_norm(values) for values in flat])
    return bool(norms.isfinite().all())


def _check_weights(weights: list[float]) -> None:
    if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights) or not any(weights):
        raise ValueError(
            f"weights of ranks must be finite, not negative and not all zero: {weights}"
        )


def _code_bytes(kind: WireKind, elements: int) -> int:
    return four_bit.code_bytes(elements) if kind == "4bit" else elements * _DTYPES[kind].itemsize


def _values(message: Tensor, begin: int, count: int) -> Tensor:
    """Returns so many fp32 values of a message, from a byte on."""
    return message[begin : begin + 4 * count].view(torch.float32)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
