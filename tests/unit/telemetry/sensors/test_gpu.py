"""The real nvidia-ml-py, in a process of its own, against a library that says what a file says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).with_name("nvml_stub.c")
NOT_SUPPORTED, DRIVER_NOT_LOADED, GPU_IS_LOST = 3, 9, 15

TWO_GPUS = """
nvmlDeviceGetCount_v2 0 0 2 0
nvmlDeviceGetUtilizationRates 0 0 87 41
nvmlDeviceGetMemoryInfo 0 0 30000000000 42949672960
nvmlDeviceGetPowerUsage 0 0 251500 0
nvmlDeviceGetEnforcedPowerLimit 0 0 400000 0
nvmlDeviceGetClockInfo 0 0 1400 0
nvmlDeviceGetTemperature 0 0 64 0
nvmlDeviceGetPcieThroughput 0 0 2000 0
nvmlDeviceGetUtilizationRates 1 0 3 1
"""

# Each line of the program's input is a script and a time; each line of output, what was recorded.
PROGRAM = """
import dataclasses, json, os, sys
from pathlib import Path
from dragoman.telemetry.sensors.gpu import Gpus
from dragoman.telemetry.record.sampler import Sampler
events = []
sampler = Sampler(events.append, {"gpu": Gpus}, "host")
for line in sys.stdin:
    script, at = json.loads(line)
    Path(os.environ["NVML_SCRIPT"]).write_text(script)
    events.clear()
    sampler.sample(at)
    print(json.dumps([dataclasses.asdict(event) for event in events]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    compiled = folder / "libnvidia-ml.so.1"
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-o", compiled, STUB], check=True
    )
    return folder


def sampled(folder, tmp_path, *moments):
    """What was recorded at each (script, time)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(json.dumps(moment) for moment in moments),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ
        | {"LD_LIBRARY_PATH": str(folder), "NVML_SCRIPT": str(tmp_path / "script.txt")},
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def without(script, function, device, code):
    return f"{function} {device} {code} 0 0\n{script}"


def test_all_values_of_all_gpus_are_read(library, tmp_path):
    ((found, reading),) = sampled(library, tmp_path, (TWO_GPUS, 0.0))
    assert found["present"] == ["gpu"]
    assert found["absent"] == {}
    assert found["about"] == {"gpu/0": "Stub 0", "gpu/1": "Stub 1"}
    values = reading["values"]
    assert {name: values[name] for name in values if name.startswith("gpu/0/")} == {
        "gpu/0/utilization_percent": 87,
        "gpu/0/memory_utilization_percent": 41,
        "gpu/0/memory_used_bytes": 30_000_000_000,
        "gpu/0/memory_total_bytes": 42_949_672_960,
        "gpu/0/power_w": 251.5,
        "gpu/0/power_limit_w": 400.0,
        "gpu/0/sm_clock_mhz": 1401,  # the stub adds NVML's number of the kind that is asked for
        "gpu/0/memory_clock_mhz": 1402,
        "gpu/0/temperature_c": 64,
        "gpu/0/pcie_sent_bytes_per_s": 2_000_000,
        "gpu/0/pcie_received_bytes_per_s": 2_001_000,
    }
    assert values["gpu/1/utilization_percent"] == 3


def test_without_the_library_there_is_one_event_that_says_so(tmp_path):
    first, second = sampled(tmp_path, tmp_path, (TWO_GPUS, 0.0), (TWO_GPUS, 1.0))
    assert [event["absent"] for event in first] == [{"gpu": "NVML: NVML Shared Library Not Found"}]
    assert second == []


def test_a_driver_without_gpus_and_one_that_is_not_loaded_are_absent_too(library, tmp_path):
    (none,) = sampled(library, tmp_path, ("nvmlDeviceGetCount_v2 0 0 0 0", 0.0))
    assert none[0]["absent"] == {"gpu": "NVML: the driver shows no GPUs"}
    (unloaded,) = sampled(
        library, tmp_path, (without(TWO_GPUS, "nvmlInitWithFlags", 0, DRIVER_NOT_LOADED), 0.0)
    )
    assert unloaded[0]["absent"] == {"gpu": "NVML: Driver Not Loaded"}


def test_a_value_that_a_model_lacks_leaves_the_others(library, tmp_path):
    lacking = without(TWO_GPUS, "nvmlDeviceGetPowerUsage", 0, NOT_SUPPORTED)
    first, second, later = sampled(
        library, tmp_path, (lacking, 0.0), (lacking, 1.0), (TWO_GPUS, 61.0)
    )
    found, reading = first
    assert found["absent"] == {"gpu/0/power_w": "NVML: Not Supported"}
    assert "gpu/0/power_w" not in reading["values"]
    assert reading["values"]["gpu/0/power_limit_w"] == 400.0
    assert len(second) == 1  # told once
    assert later[0]["absent"] == {}  # tried again after a while
    assert later[1]["values"]["gpu/0/power_w"] == 251.5


def test_a_gpu_that_is_lost_leaves_the_other(library, tmp_path):
    lost = without(TWO_GPUS, "nvmlDeviceGetHandleByIndex_v2", 0, GPU_IS_LOST)
    ((found, reading),) = sampled(library, tmp_path, (lost, 0.0))
    assert found["absent"] == {"gpu/0": "NVML: GPU is lost"}
    assert {name.split("/")[1] for name in reading["values"]} == {"1"}


def test_a_driver_that_goes_away_is_recorded_and_found_again(library, tmp_path):
    functions = {line.split()[0] for line in TWO_GPUS.split("\n") if line.startswith("nvmlDevice")}
    gone = "".join(
        f"{function} {device} {GPU_IS_LOST} 0 0\n"
        for function in functions - {"nvmlDeviceGetCount_v2"}
        for device in (0, 1)
    )
    gone += "".join(f"nvmlDeviceGetEnforcedPowerLimit {d} {GPU_IS_LOST} 0 0\n" for d in (0, 1))
    moments = [(TWO_GPUS, 0.0), (gone + TWO_GPUS, 1.0), (gone + TWO_GPUS, 2.0), (TWO_GPUS, 62.0)]
    _, went, stayed, back = sampled(library, tmp_path, *moments)
    assert [event.get("absent") for event in went] == [{"gpu": "NVML: GPU is lost"}]
    assert stayed == []
    assert back[0]["present"] == ["gpu"]
    assert back[1]["values"]["gpu/0/utilization_percent"] == 87
