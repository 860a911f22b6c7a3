"""The product of two matrices, by the library that computes it fastest on this machine.

torch hands products in fp32 to MKL, which leaves the 512-bit units of AMD's processors unused and
reaches less than half of what oneDNN does there (docs/log.md). torch contains oneDNN, too, behind
an operator that its compiler calls.
"""

from functools import cache

import torch
from torch import Tensor

WORTH_ONEDNN = 1 << 20
"""Multiplications from which on the call, which takes 8 microseconds longer, is made up for."""
_PROBE = 64


@cache
def has_faster_onednn() -> bool:
    """Returns whether products in fp32 are left to oneDNN here.

    It depends on the processor and on no measurement, so that a run which is resumed on this
    machine computes the same bits.
    """
    capabilities = torch.cpu.get_capabilities()
    is_amd = str(capabilities.get("cpu_name", "")).startswith("AMD")
    return bool(is_amd and capabilities.get("avx512_f") and _onednn_is_right())


def is_worth_onednn(left: Tensor, right: Tensor) -> bool:
    """Returns whether oneDNN computes this product of two matrices fastest."""
    return (
        left.dtype == right.dtype == torch.float32
        and left.device.type == "cpu"
        and left.ndim == right.ndim == 2
        and left.numel() * right.shape[1] >= WORTH_ONEDNN
        and has_faster_onednn()
        and not torch.is_autocast_enabled("cpu")
    )


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns left @ right, plus a bias for each column. oneDNN's result has no gradient."""
    if is_worth_onednn(left, right):
        return _by_onednn(left, right, bias)
    found = left @ right
    return found if bias is None else found.add_(bias)


def _by_onednn(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, bias, "none", [], "")
    return found


def _onednn_is_right() -> bool:
    """Returns whether the operator, which torch may change, does what is expected of it."""
    values = torch.linspace(-1, 1, _PROBE**2).view(_PROBE, _PROBE)
    try:
        found = _by_onednn(values, values.T, values[0])
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False
    return torch.allclose(found, values @ values.T + values[0], rtol=1e-4, atol=1e-4)
