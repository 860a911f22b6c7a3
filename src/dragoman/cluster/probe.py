"""Reports what this host is and has: `python -m dragoman.cluster.probe`, run over ssh."""

import platform
import shutil
import socket
from importlib import metadata
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

import psutil

from dragoman import __version__
from dragoman.cluster.ssh import answer
from dragoman.cores import allowed_cores
from dragoman.errors import DragomanError, storage_errors
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.version import code_hash


def facts(question: dict[str, Any]) -> dict[str, Any]:
    folder = Path(question["folder"]).expanduser()
    with storage_errors(folder, "making the working folder"):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "hostname": socket.gethostname(),
        "folder": str(folder),
        "version": __version__,
        "code": code_hash(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "cuda_devices": cuda_devices(),
        "cores": allowed_cores(),
        "interfaces": interfaces(),
        "free_bytes": shutil.disk_usage(folder).free,
        **data_hash(folder / question["prepared"]),
    }


def cuda_devices() -> int:
    # Importing torch takes seconds, which a host without a driver need not spend.
    drivers = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")
    if not any(Path(driver).exists() for driver in drivers):
        return 0
    import torch  # noqa: PLC0415

    return torch.cuda.device_count()


def interfaces() -> list[tuple[str, str, int]]:
    """Returns (name, address, prefix) of every interface that is up."""
    states = psutil.net_if_stats()
    return [
        (name, address.address, ip_interface(f"{plain}/{address.netmask}").network.prefixlen)
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6) and address.netmask
        if states[name].isup and (plain := address.address.partition("%")[0])
        if ":" not in plain  # an IPv6 netmask is not a prefix; hosts connect over IPv4
    ]


def data_hash(prepared: Path) -> dict[str, str | None]:
    """Returns the hash of the prepared data after reading every file; None if there is none.

    Tokens that are fetched while a run trains need not be there."""
    if not (prepared / PASSPORT_NAME).exists():
        return {"data": None}
    try:
        data = PreparedData.open(prepared)
        data.verify(may_lack_tokens=data.is_fetched)
    except DragomanError as error:
        return {"data": "damaged", "data_error": str(error)}
    return {"data": data.passport.content_hash}


if __name__ == "__main__":
    answer(facts)
