"""A host that is cut off or dies is named in time, and no process outlives the run."""

import re

import pytest
from processes import ENDLESS, dragoman, start_dragoman, wait_for_step, wait_until

from dragoman.rundir import RunDir, read_json

pytestmark = pytest.mark.timeout(240)

REPORTED_S = 15
MENDS = {"cut": "heal", "kill": "boot"}


@pytest.mark.parametrize("fault", ["cut", "kill"])
def test_a_host_that_is_unplugged_or_dies_is_named_and_the_run_can_go_on(
    digits, host_list, processes_of, nodes, tmp_path, fault
):
    run = tmp_path / "runs" / fault
    hosts = host_list(2)
    process = start_dragoman("train", digits, "--run", run, "--hosts", hosts, *ENDLESS)
    wait_for_step(run, 40)
    try:
        getattr(nodes, fault)("node2")
        output, errors = process.communicate(timeout=120)
        wait_until(lambda: not processes_of("node1") | processes_of("node2"))
    finally:
        getattr(nodes, MENDS[fault])("node2")
    assert process.returncode == 1
    assert "Traceback" not in output + errors
    waited = re.findall(r"node2 has not been heard from for (\d+) s", output + errors)
    if fault == "cut":
        assert waited, output + errors
        assert min(map(int, waited)) <= REPORTED_S
    else:
        assert "node2" in errors
        return  # tests of elastic hosts go on from there

    step = read_json(RunDir(tmp_path / "node1" / "runs" / fault).status)["step"]
    more = dragoman(
        *("train", digits, "--run", run, "--hosts", hosts, "--set", f"training.steps={step + 2}")
    )
    assert more.returncode == 0, more.stdout + more.stderr
    assert "going on after step" in more.stdout
