"""With real processes: a parent that goes away, and a child that watches it."""

import subprocess
import sys

import pytest

CHILD = """
import signal, sys, time
from dragoman.distributed import parent
parent.SAVING_S = 1.0
def save(*_):
    print("saved", flush=True)
if {may_save}:
    signal.signal(signal.SIGTERM, save)
watch = parent.ParentWatch()
if {may_save}:
    watch.allow_saving()
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.stdin.readline()
"""


@pytest.mark.parametrize(("may_save", "said"), [(False, ""), (True, "saved\n")])
def test_a_rank_ends_when_its_parent_has_and_may_save_before(may_save, said):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD.format(may_save=may_save)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        # The child has inherited the pipe: its end is the end of the child.
        assert parent.stdout.read() == said


KERNELS_CHILD = """
import os, signal, sys, time
from dragoman.distributed.parent import end_with_parent
end_with_parent({parent}, signal.SIGKILL)
print("ready", flush=True)
while True:
    time.sleep(100)
"""


def test_the_kernel_ends_a_process_with_its_parent():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, KERNELS_CHILD.format(parent="os.getppid()")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        assert parent.stdout.read() == ""


def test_a_process_whose_parent_has_ended_before_ends_at_once():
    child = KERNELS_CHILD.format(parent=1 << 30)
    done = subprocess.run(
        [sys.executable, "-c", child], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
