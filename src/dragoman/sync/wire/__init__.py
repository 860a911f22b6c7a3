"""Averages tensors of weight differences over ranks: as fp32, as bf16, or as four bits a value.

All ranks end with the same bits, since each mean is either computed by one rank for all, or by
all ranks from the same bytes in the order of the ranks.
"""

from dragoman.distributed.wire_bytes import WireKind, sent_bytes
from dragoman.sync.wire.averaging import Average, average

__all__ = ["Average", "WireKind", "average", "sent_bytes"]
