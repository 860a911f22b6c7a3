"""NVIDIA GPUs of this host, through NVML: all of them, whether or not this run may use them."""

from collections.abc import Callable
from typing import Any

import pynvml

from dragoman.telemetry.sensors.sensor import AbsentError, Sensor

_KILO = 1000


class Gpus(Sensor):
    def __init__(self) -> None:
        super().__init__()
        self._handles: dict[int, Any] = {}
        try:
            pynvml.nvmlInit()
            self._devices = range(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            raise AbsentError(f"NVML: {error}") from error
        if not self._devices:
            raise AbsentError("NVML: the driver shows no GPUs")

    def read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for device in self._devices:
            if (handle := self._asked(f"gpu/{device}", self._handle, device)) is None:
                continue
            for value, ask in _QUESTIONS.items():
                answers = self._asked(f"gpu/{device}/{value}", ask, handle) or {}
                values |= {f"gpu/{device}/{name}": answers[name] for name in answers}
        if not values:  # the driver is gone; what some models lack is never all
            reasons = list(self.missing.values())
            raise AbsentError(reasons[0] if reasons else "NVML: no GPU answers")
        return values

    def _asked(self, name: str, ask: Callable[[Any], Any], of: Any) -> Any:
        if name in self.missing:
            return None
        try:
            return ask(of)
        except pynvml.NVMLError as error:
            self.missing[name] = f"NVML: {error}"
            return None

    def _handle(self, device: int) -> Any:
        if device not in self._handles:
            self._handles[device] = pynvml.nvmlDeviceGetHandleByIndex(device)
            name = pynvml.nvmlDeviceGetName(self._handles[device])
            self.about[f"gpu/{device}"] = name if isinstance(name, str) else name.decode()
        return self._handles[device]


def _utilization(handle: Any) -> dict[str, float]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization_percent": rates.gpu, "memory_utilization_percent": rates.memory}


def _memory(handle: Any) -> dict[str, float]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_used_bytes": memory.used, "memory_total_bytes": memory.total}


def _single(name: str, ask: Callable[[Any], float]) -> Callable[[Any], dict[str, float]]:
    return lambda handle: {name: ask(handle)}


# Asked one by one, since a model of GPU may lack any of them.
_QUESTIONS: dict[str, Callable[[Any], dict[str, float]]] = {
    "utilization_percent": _utilization,
    "memory_used_bytes": _memory,
    "power_w": _single("power_w", lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / _KILO),
    "power_limit_w": _single(
        "power_limit_w", lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / _KILO
    ),
    "sm_clock_mhz": _single(
        "sm_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM)
    ),
    "memory_clock_mhz": _single(
        "memory_clock_mhz", lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM)
    ),
    "temperature_c": _single(
        "temperature_c",
        lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU),
    ),
    # NVML watches the bus for 20 ms to answer each of these, in KB/s.
    "pcie_sent_bytes_per_s": _single(
        "pcie_sent_bytes_per_s",
        lambda h: _KILO * pynvml.nvmlDeviceGetPcieThroughput(h, pynvml.NVML_PCIE_UTIL_TX_BYTES),
    ),
    "pcie_received_bytes_per_s": _single(
        "pcie_received_bytes_per_s",
        lambda h: _KILO * pynvml.nvmlDeviceGetPcieThroughput(h, pynvml.NVML_PCIE_UTIL_RX_BYTES),
    ),
}
