"""Whether this machine can have a GPU for torch, found out without importing torch."""

import ctypes
import sys
from pathlib import Path

CUDA_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""What torch's CUDA loads; without it torch finds no device."""
ROCM_DEVICE = Path("/dev/kfd")


def has_gpu_driver() -> bool:
    """Returns False where torch cannot find a GPU; where it may, only torch knows."""
    if ROCM_DEVICE.exists():
        return True
    try:
        ctypes.CDLL(CUDA_DRIVER)
    except OSError:
        return False
    return True
