"""What goes over each network interface of this network namespace, and what TCP had to repeat."""

import time
from pathlib import Path
from typing import Any

import psutil

from dragoman.telemetry.sensors.sensor import AbsentError, Sensor

# self/net shows the namespace of the process that reads it.
_PROC = Path("/proc/self/net")
_TCP = {
    ("snmp", "Tcp"): {
        "OutSegs": "tcp/sent_segments_total",
        "RetransSegs": "tcp/retransmitted_segments_total",
        "InErrs": "tcp/received_errors_total",
    },
    ("netstat", "TcpExt"): {
        "TCPTimeouts": "tcp/timeouts_total",
        "TCPLostRetransmit": "tcp/lost_retransmissions_total",
    },
}


LEAST_WINDOW_S = 0.05
"""A rate over less than this is that of a few packets."""


class Network(Sensor):
    """Counts bytes, and notes the highest rate of any moment since the last reading: a way that is
    capped shows the cap in every moment, and one that is not passes its bytes in bursts."""

    def __init__(self) -> None:
        super().__init__()
        self._seen_at, self._seen = 0.0, dict[str, Any]()
        self._peaks = dict[str, float]()
        for name, state in psutil.net_if_stats().items():
            if state.isup and state.speed:
                self.about[f"network/{name}"] = f"{state.speed} Mbit/s"
                self.link_bytes_per_s[name] = state.speed * 1e6 / 8
            elif state.isup:
                self.about[f"network/{name}"] = "speed not known"

    def glance(self) -> None:
        self._note_rates(_counters_by_interface())

    def _note_rates(self, interfaces: dict[str, Any]) -> None:
        now = time.monotonic()
        passed_s = now - self._seen_at
        if passed_s < LEAST_WINDOW_S:
            return
        for name, count in interfaces.items():
            before = self._seen.get(name, count)
            for way, gained in (
                ("sent", count.bytes_sent - before.bytes_sent),
                ("received", count.bytes_recv - before.bytes_recv),
            ):
                key = f"network/{name}/{way}_peak_bytes_per_s"
                self._peaks[key] = max(self._peaks.get(key, 0.0), gained / passed_s)
        self._seen_at, self._seen = now, interfaces

    def read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        interfaces = _counters_by_interface()
        self._note_rates(interfaces)
        peaks, self._peaks = self._peaks, {}
        if not interfaces:
            raise AbsentError("the system shows no network interfaces")
        for name, count in interfaces.items():
            if not count.packets_sent and not count.packets_recv:
                continue  # down, or never used: some systems have dozens of those
            values |= {
                f"network/{name}/sent_bytes_total": count.bytes_sent,
                f"network/{name}/received_bytes_total": count.bytes_recv,
                f"network/{name}/sent_packets_total": count.packets_sent,
                f"network/{name}/received_packets_total": count.packets_recv,
                f"network/{name}/sent_errors_total": count.errout,
                f"network/{name}/received_errors_total": count.errin,
                f"network/{name}/sent_drops_total": count.dropout,
                f"network/{name}/received_drops_total": count.dropin,
            }
            for way in ("sent", "received"):
                key = f"network/{name}/{way}_peak_bytes_per_s"
                if key in peaks:
                    values[key] = round(peaks[key])
        return values


def _counters_by_interface() -> dict[str, Any]:
    return dict(psutil.net_io_counters(pernic=True, nowrap=False))


class Tcp(Sensor):
    """Reads the counters of the whole namespace: the system does not count by interface."""

    def __init__(self, folder: Path = _PROC) -> None:
        super().__init__()
        self._folder = folder

    def read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for (file, protocol), names in _TCP.items():
            counters = _counters(self._folder / file, protocol)
            for counter, name in names.items():
                if counter in counters:
                    values[name] = int(counters[counter])
                else:
                    self.missing[name] = f"{self._folder / file} has no {protocol} {counter}"
        return values


def _counters(path: Path, protocol: str) -> dict[str, str]:
    """Returns counter -> count, from a pair of lines: names, then numbers."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise AbsentError(f"{path} cannot be read: {error.strerror}") from error
    own = [line.split() for line in lines if line.startswith(f"{protocol}:")]
    return dict(zip(*own, strict=False)) if len(own) == 2 else {}
