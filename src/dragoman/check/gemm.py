"""One worker that multiplies matrices: `python -m dragoman.check.gemm DEVICE PARENT`.

Prints a line once it is ready, waits for a line on its input, and prints what it has measured. It
ends with its parent: the kernel sends it SIGKILL, and its input closes.
"""

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from dragoman.distributed.parent import end_with_parent

if TYPE_CHECKING:
    import torch

MEASURE_S = 0.6
LEAST_PRODUCTS = 3


def measured(device: "torch.device", seconds: float = MEASURE_S) -> dict[str, Any]:
    """Returns fp32 operations per second in the mean, so that whoever takes turns with others has
    its share, and of a GPU its name and memory."""
    import torch  # noqa: PLC0415 - see `main`

    from dragoman.distributed.devices import WIDTH  # noqa: PLC0415
    from dragoman.distributed.gemm import product  # noqa: PLC0415

    width = WIDTH.get(device.type, WIDTH["cpu"])
    factor = torch.randn(width, width, device=device)
    count, begun = 0, time.perf_counter()
    while count < LEAST_PRODUCTS or time.perf_counter() - begun < seconds:
        product(factor, factor)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        count += 1
    speed = count * 2.0 * width**3 / (time.perf_counter() - begun)
    if device.type != "cuda":
        return {"flops_per_s": speed}
    found = torch.cuda.get_device_properties(device)
    return {"flops_per_s": speed, "device": found.name, "memory_bytes": found.total_memory}


def main() -> None:
    # First of all: torch may take a minute from a cold disk, and the parent may end meanwhile.
    end_with_parent(int(sys.argv[2]), signal.SIGKILL)
    import torch  # noqa: PLC0415

    device = torch.device(sys.argv[1])
    measured(device, 0.0)  # libraries are loaded and memory is mapped here
    _say({"is_ready": True})
    if sys.stdin.readline():
        _say(measured(device))


def _say(words: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
