"""Prints the machine's speed in large fp32 matrix products, and how many processors it had.

    python gemm.py THREADS SECONDS

Two numbers: operations a second, over all products of the faster of torch's two libraries (MKL and
oneDNN), and processor seconds a second. Where the second is below the number of threads, other
programs were running.
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

WIDTH = 2048


def by_mkl(factor: Tensor) -> Tensor:
    return factor @ factor


def by_onednn(factor: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(factor, factor.mT, None, "none", [], "")
    return found


def speed(product: Callable[[Tensor], Tensor], seconds: float) -> tuple[float, float]:
    """Returns operations a second and processor seconds a second."""
    factor = torch.randn(WIDTH, WIDTH)
    product(factor)
    begun, cpu_begun = time.perf_counter(), time.process_time()
    products = 0
    while (took_s := time.perf_counter() - begun) < seconds:
        product(factor)
        products += 1
    return products * 2 * WIDTH**3 / took_s, (time.process_time() - cpu_begun) / took_s


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    seconds = float(sys.argv[2]) / 2
    print(*max(speed(product, seconds) for product in (by_mkl, by_onednn)))


if __name__ == "__main__":
    main()
