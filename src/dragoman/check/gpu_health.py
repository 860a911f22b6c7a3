"""What NVML knows about the health of this host's GPUs."""

from collections.abc import Callable
from typing import Any

import pynvml

# Clocks below what was asked for because something is wrong with the card or its surroundings.
# Not power: cards that compute at full speed are at their power limit, and that is as it should be.
_SLOWDOWNS = {
    "hardware slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "too hot": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "too hot, slowed down by the card itself": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "power brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
}


def gpus() -> dict[str, Any]:
    """Returns the driver and each GPU; without a driver, or where NVML fails, no GPUs."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return {"driver": None, "gpus": []}
    try:
        driver = _asked(pynvml.nvmlSystemGetDriverVersion)
        count = _asked(pynvml.nvmlDeviceGetCount) or 0
        return {
            "driver": driver.decode() if isinstance(driver, bytes) else driver,
            "gpus": [_gpu(number) for number in range(count)],
        }
    finally:
        _asked(pynvml.nvmlShutdown)


def _gpu(number: int) -> dict[str, Any]:
    """Returns what one GPU answers; a model of GPU may lack any of it."""
    handle = _asked(pynvml.nvmlDeviceGetHandleByIndex, number)
    if handle is None:
        return {"number": number, "name": "", "is_lost": True}
    name = _asked(pynvml.nvmlDeviceGetName, handle)
    memory = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
    reasons = _asked(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    errors = _asked(
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    return {
        "number": number,
        "name": name.decode() if isinstance(name, bytes) else name or "",
        "is_lost": memory is None,
        "memory_bytes": memory.total if memory else 0,
        "used_bytes": memory.used if memory else 0,
        "ecc_errors": errors or 0,
        "slowdowns": [words for words, bit in _SLOWDOWNS.items() if reasons & bit],
    }


def _asked(ask: Callable[..., Any], *of: Any) -> Any:
    try:
        return ask(*of)
    except pynvml.NVMLError:
        return None
