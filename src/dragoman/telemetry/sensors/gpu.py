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
            for question, ask in _QUESTIONS.items():
                name = f"gpu/{device}/{question}"
                if (answer := self._asked(name, ask, handle)) is not None:
                    values[name] = answer
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


# Asked one by one, since a model of GPU may lack any of them.
_QUESTIONS: dict[str, Callable[[Any], float]] = {
    "utilization_percent": lambda h: pynvml.nvmlDeviceGetUtilizationRates(h).gpu,
    "memory_utilization_percent": lambda h: pynvml.nvmlDeviceGetUtilizationRates(h).memory,
    "memory_used_bytes": lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).used,
    "memory_total_bytes": lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).total,
    "power_w": lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / _KILO,
    "power_limit_w": lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / _KILO,
    "sm_clock_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM),
    "temperature_c": lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU),
    # NVML watches the bus for 20 ms to answer each of these, in KB/s.
    "pcie_sent_bytes_per_s": lambda h: (
        _KILO * pynvml.nvmlDeviceGetPcieThroughput(h, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    ),
    "pcie_received_bytes_per_s": lambda h: (
        _KILO * pynvml.nvmlDeviceGetPcieThroughput(h, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    ),
}
