import subprocess
import sys

import pytest

FAULTS = """
import resource, sys, torch
from dragoman.distributed.allocator import give_back_freed_memory, keep_freed_memory

if "keep" in sys.argv:
    keep_freed_memory()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    blocks = [torch.ones(megabytes << 18) for megabytes in (1, 36, 8, 40, 3, 16)]
    del blocks
    if "give-back" in sys.argv:
        give_back_freed_memory()

for _ in range(10):  # fragments grow together
    step()
before = faults()
for _ in range(5):
    step()
print(faults() - before)
"""


def faults_of(*how):
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, *how], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is of glibc")
def test_blocks_are_taken_again_without_asking_the_kernel():
    usual = faults_of()
    assert faults_of("keep") < usual / 4
    assert faults_of("keep", "give-back") > usual / 2, "what is free can still be given back"
