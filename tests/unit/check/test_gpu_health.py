"""A stand-in for NVML: there is no GPU where these tests run."""

from types import SimpleNamespace

import pynvml
import pytest

from dragoman.check.gpu_health import gpus


@pytest.fixture
def nvml(monkeypatch):
    """Answers of NVML by function name; a missing one is not supported."""
    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "550.54",
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA T4",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=16, used=1),
    }

    def fail(*_):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    for name in dir(pynvml):
        if name.startswith(("nvmlDevice", "nvmlInit", "nvmlShutdown", "nvmlSystem")):
            monkeypatch.setattr(pynvml, name, answers.get(name, fail))

    def set_answer(name, answer):
        monkeypatch.setattr(pynvml, name, answer)

    set_answer.fail = fail
    return set_answer


def test_a_host_without_a_driver_has_no_gpus(nvml):
    nvml("nvmlInit", nvml.fail)
    assert gpus() == {"driver": None, "gpus": []}


def test_what_a_model_does_not_support_is_not_wrong_with_it(nvml):
    found = gpus()
    assert found["driver"] == "550.54"
    (gpu,) = found["gpus"]
    assert gpu["name"] == "NVIDIA T4"
    assert (gpu["is_lost"], gpu["ecc_errors"], gpu["slowdowns"]) == (False, 0, [])


def test_errors_and_slowdowns(nvml):
    nvml("nvmlDeviceGetTotalEccErrors", lambda *_: 3)
    hot = pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    power = pynvml.nvmlClocksThrottleReasonSwPowerCap  # as it should be at full speed
    nvml("nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: hot | power)
    (gpu,) = gpus()["gpus"]
    assert gpu["ecc_errors"] == 3
    assert len(gpu["slowdowns"]) == 1
    assert "hot" in gpu["slowdowns"][0]


def test_a_gpu_that_has_fallen_off_the_bus(nvml):
    nvml("nvmlDeviceGetHandleByIndex", nvml.fail)
    assert gpus()["gpus"][0]["is_lost"]
    nvml("nvmlDeviceGetHandleByIndex", lambda number: number)
    nvml("nvmlDeviceGetMemoryInfo", nvml.fail)
    assert gpus()["gpus"][0]["is_lost"]
