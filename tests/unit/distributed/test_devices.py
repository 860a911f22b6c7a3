import json

import pytest
import torch

from dragoman.distributed import devices
from dragoman.distributed.group import Group
from dragoman.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def peaks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dragoman" / "peaks.json"


def test_the_device_is_told_with_its_measured_peak(peaks):
    found = devices.device_found("fp32", Group(0, 1, 0, CPU))
    assert (found.device, found.precision) == ("cpu", "fp32")
    assert found.name
    assert found.memory_bytes > 1e9
    (kept,) = json.loads(peaks.read_text()).values()
    # Anything that runs this makes more than that and less than all computers of the world.
    assert 1e8 < found.peak_flops == kept < 1e18


def test_the_highest_peak_is_kept_for_a_busy_day(peaks):
    assert devices.highest_so_far(peaks, "gpu", 2.0) == 2.0
    assert devices.highest_so_far(peaks, "gpu", 1.0) == 2.0
    assert devices.highest_so_far(peaks, "other", 1.0) == 1.0
    assert devices.highest_so_far(peaks, "gpu", 3.0) == 3.0
    assert json.loads(peaks.read_text()) == {"gpu": 3.0, "other": 1.0}


@pytest.mark.parametrize("content", ["", "[1]", '{"gpu": "much"}', "null"])
def test_a_damaged_file_of_peaks_is_replaced(peaks, content):
    peaks.parent.mkdir()
    peaks.write_text(content)
    assert devices.highest_so_far(peaks, "gpu", 2.0) == 2.0
    assert json.loads(peaks.read_text()) == {"gpu": 2.0}


def test_a_home_that_cannot_be_written_to_stops_nothing(tmp_path):
    (tmp_path / "file").touch()
    assert devices.highest_so_far(tmp_path / "file" / "peaks.json", "gpu", 2.0) == 2.0


def test_a_process_remembers_the_most_memory_it_had():
    before = devices.memory_peak_bytes(CPU)
    content = torch.ones(40_000_000)  # 160 MB
    after = devices.memory_peak_bytes(CPU)
    del content
    assert after >= max(before, 160e6)
    assert devices.memory_peak_bytes(CPU) >= after


@pytest.mark.parametrize(
    ("units", "killed_by", "speedup", "precision"),
    [
        ({"amx_bf16": True}, None, 4.0, "bf16"),
        ({"avx512_bf16": True}, None, 1.2, "fp32"),
        ({"amx_bf16": True}, "SIGILL", 4.0, "fp32"),
        ({}, None, 4.0, "fp32"),
    ],
)
def test_auto_takes_bf16_where_its_units_are_faster(
    monkeypatch, units, killed_by, speedup, precision
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    monkeypatch.setattr(devices, "_killed_by_half_products", lambda: killed_by)
    peaks_of = {"fp32": 1.0, "bf16": speedup}
    monkeypatch.setattr(devices, "measured_peak", lambda device, kind: peaks_of[kind])
    assert devices.agreed_precision("auto", Group(0, 1, 0, CPU)) == precision


def test_a_device_without_bf16_is_named_with_what_it_has(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla V100")
    with pytest.raises(UserError, match="Tesla V100 has no bf16; set"):
        devices.check_precision("bf16", torch.device("cuda", 0))
    devices.check_precision("bf16", torch.device("cpu"))
    devices.check_precision("fp16", torch.device("cuda", 0))
