"""What a stranger does who can reach a store: finds its port, and writes into every key."""

import pickle
import sys
from pathlib import Path

import psutil

PATCHED_PICKLE = """
import os, sys, traceback
import pickle, _pickle

def refuse(*_, **__):
    with open(os.environ["PICKLE_MARKER"], "a") as marker:
        marker.write(f"{sys.orig_argv}\\n{''.join(traceback.format_stack())}\\n")
    raise RuntimeError("something was unpickled")

class Refused:
    def __init__(self, *_, **__):
        refuse()

for module in (pickle, _pickle):
    module.load = module.loads = refuse
    module.Unpickler = Refused
pickle._Unpickler = Refused
"""
# Run with Python on whichever host reaches the store: address and port, marker, seconds.
WRITE_PICKLES = """
import sys, time
from datetime import timedelta
from torch._C._distributed_c10d import TCPStore
port, pickled, seconds = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), float(sys.argv[3])
store = TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=10))
seen, ends = set(), time.monotonic() + seconds
while time.monotonic() < ends:
    for key in store.list_keys():
        seen.add(key)
        store.set(key, pickled)
print(len(seen))
"""


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self):
        return Path.touch, (self._marker,)


def pickle_that_touches(marker: Path) -> str:
    return pickle.dumps(Touch(marker)).hex()


def without_pickle(folder: Path, marker: Path) -> dict[str, str]:
    """Variables for a Python that writes to `marker` when anything is unpickled."""
    place = folder / "no-pickle"
    place.mkdir()
    (place / "sitecustomize.py").write_text(PATCHED_PICKLE)
    return {"PYTHONPATH": str(place), "PICKLE_MARKER": str(marker)}


def writing_pickles(port: int, marker: Path, seconds: float) -> list[str]:
    return [
        *(sys.executable, "-c", WRITE_PICKLES),
        *(str(port), pickle_that_touches(marker), str(seconds)),
    ]


def listening(pid: int) -> dict[tuple[str, int], str]:
    """(address, port) -> name of the process, of all that listen among a process and its own."""
    found = {}
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                found[tuple(connection.laddr)] = process.name()
    return found
