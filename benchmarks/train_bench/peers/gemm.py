"""Prints the machine's speed in large fp32 matrix products, and how many processors it had.

    python gemm.py THREADS SECONDS

Two numbers: operations a second, over all products, and processor seconds a second. Where the
second is below the number of threads, other programs were running.
"""

import sys
import time

import torch

WIDTH = 2048


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    seconds = float(sys.argv[2])
    factor = torch.randn(WIDTH, WIDTH)
    product = torch.empty(WIDTH, WIDTH)
    torch.mm(factor, factor, out=product)
    begun, cpu_begun = time.perf_counter(), time.process_time()
    products = 0
    while (took_s := time.perf_counter() - begun) < seconds:
        torch.mm(factor, factor, out=product)
        products += 1
    cpu_s = time.process_time() - cpu_begun
    print(products * 2 * WIDTH**3 / took_s, cpu_s / took_s)


if __name__ == "__main__":
    main()
