import json
import os
import subprocess
import sys

import pytest
import torch
from processes import wait_until

from dragoman.check import gemm
from dragoman.distributed.devices import WIDTH


def test_products_give_a_speed(monkeypatch):
    monkeypatch.setitem(WIDTH, "cpu", 64)
    found = gemm.measured(torch.device("cpu"), seconds=0.01)
    assert found["flops_per_s"] > 1e6
    assert "device" not in found


@pytest.fixture
def worker():
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman.check.gemm", "cpu", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_a_worker_waits_until_all_are_ready(worker):
    assert json.loads(worker.stdout.readline()) == {"is_ready": True}
    worker.stdin.write("go\n")
    worker.stdin.flush()
    assert json.loads(worker.stdout.readline())["flops_per_s"] > 0


def test_a_worker_ends_when_its_input_closes(worker):
    worker.stdout.readline()
    worker.stdin.close()
    wait_until(lambda: worker.poll() is not None, 10)
    assert worker.returncode == 0
    worker.stdin = None


def test_torch_is_imported_after_the_worker_is_bound_to_its_parent():
    """It takes long from a cold disk, and a check that ends meanwhile leaves nothing behind."""
    program = "import sys, dragoman.check.gemm; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
