"""What a rank computes on and how fast it can compute at best: measured, and kept per host."""

import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.gemm import product
from dragoman.distributed.group import Group
from dragoman.errors import StorageError, UserError
from dragoman.rundir import write_whole
from dragoman.telemetry.events import DeviceFound

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# Large enough that nothing but the product counts, small enough for any device.
WIDTH = {"cuda": 8192, "cpu": 768}
MEASURE_S = 0.1
LEAST_PRODUCTS = 3
WORTH_ROUNDING = 1.5
"""bf16 is chosen where its products are so many times as fast as those of fp32."""
BF16_UNITS = ("amx_bf16", "avx512_bf16")
"""What torch calls a CPU's units for bf16; others make its products of many instructions."""


def device_found(precision: str, group: Group) -> DeviceFound:
    """Returns this rank's device; one rank of each host measures its peak while the others wait.

    Collective: every rank must call.
    """
    device = group.device
    name = _name_of(device)
    peak = None
    if group.local_rank == 0:
        key = f"{name}, {precision}, torch {torch.__version__}, {torch.get_num_threads()} threads"
        peak = highest_so_far(peaks_file(), key, measured_peak(device, precision))
    found = group.gather([group.host, name, peak])
    alike = [theirs for host, other, theirs in found if [host, other] == [group.host, name]]
    return DeviceFound(
        device=str(device),
        name=name,
        precision=precision,
        peak_flops=peak or next(filter(None, alike), None),
        memory_bytes=_memory_of(device),
    )


def agreed_precision(asked: str, group: Group) -> str:
    """Returns what all ranks compute in; refuses a precision that one of the devices lacks.

    Collective: every rank must call.
    """
    if asked != "auto":
        all_or_none(group, lambda: check_precision(asked, group.device))
        return asked
    return "bf16" if all(group.gather(has_fast_bf16(group.device))) else "fp32"


def check_precision(precision: str, device: torch.device) -> None:
    """Refuses a precision that the device does not have."""
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError(
            f"{torch.cuda.get_device_name(device)} has no bf16; set training.precision to fp16, "
            "which comes with loss scaling"
        )
    if precision != "fp32" and device.type == "cpu" and (killed_by := _killed_by_half_products()):
        raise UserError(
            f"this machine ends a product of half-precision matrices with {killed_by}; set "
            "training.precision to fp32, or the environment variable ONEDNN_MAX_CPU_ISA to "
            "AVX512_CORE_FP16"
        )


def has_fast_bf16(device: torch.device) -> bool:
    """Returns whether the device has units for products in bf16, and they are worth it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    if not any(capabilities.get(unit) for unit in BF16_UNITS) or _killed_by_half_products():
        return False
    return measured_peak(device, "bf16") > WORTH_ROUNDING * measured_peak(device, "fp32")


def _killed_by_half_products() -> str | None:
    """Returns the signal by which virtual machines end whoever uses their matrix units (AMX)."""
    probe = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False)
    return signal.Signals(-done.returncode).name if done.returncode < 0 else None


def memory_peak_bytes(device: torch.device) -> float:
    """Returns the most that this process has held at once: of the GPU's memory, or resident."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def reset_memory_peak(device: torch.device) -> None:
    """Lets `memory_peak_bytes` begin again at what is held now, where the system can do that."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with suppress(OSError):  # not Linux; 5 stands for the peak of the resident set
            Path("/proc/self/clear_refs").write_text("5")


def measured_peak(device: torch.device, precision: str) -> float:
    """Returns floating-point operations a second of the fastest of some large matrix products."""
    width = WIDTH.get(device.type, WIDTH["cpu"])
    factor = torch.randn(width, width, device=device).to(DTYPES[precision])
    fastest_s = float("inf")
    begun = time.perf_counter()
    count = 0
    while count < LEAST_PRODUCTS or time.perf_counter() - begun < MEASURE_S:
        before = time.perf_counter()
        product(factor, factor)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        fastest_s = min(fastest_s, time.perf_counter() - before)
        count += 1
    return 2.0 * width**3 / fastest_s


def highest_so_far(path: Path, key: str, measured: float) -> float:
    """Returns the highest of all measurements on this host: a busy device measures too low."""
    kept: dict[str, float] = {}
    with suppress(OSError, ValueError, TypeError, AttributeError):
        kept = {str(name): float(peak) for name, peak in json.loads(path.read_text()).items()}
    if measured > kept.get(key, 0.0):
        with suppress(StorageError):  # a home that cannot be written to keeps nothing
            write_whole(path, json.dumps(kept | {key: measured}, indent=2))
    return max(measured, kept.get(key, 0.0))


def peaks_file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "dragoman" / "peaks.json"


def _name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_of(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    return float(psutil.virtual_memory().total)
