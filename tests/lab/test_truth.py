"""Some worlds of `make bench-truth`: the report says what is wrong, where, and what it costs."""

import pytest
from labs import skip_without_lab
from truth_lab.do_run import do_run, prepare, report
from truth_lab.judge import judge
from truth_lab.worlds import WORLDS

pytestmark = pytest.mark.timeout(300)

NAMES = ["node2 of 3 capped", "all capped, 2 nodes", "node2 of 2 slower", "slow data, 2 nodes"]
TRIES = 3
"""A machine that has other things to do may be what takes the time; the raw events show it."""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    skip_without_lab()
    return prepare(tmp_path_factory.mktemp("truth"))


@pytest.mark.parametrize("name", NAMES)
def test_a_report_tells_what_was_injected_and_what_the_raw_events_show(name, recipe, tmp_path):
    world = next(world for world in WORLDS if world.name == name)
    for _ in range(TRIES):
        do_run(world, recipe, tmp_path / "world")
        report(tmp_path / "world")
        judged = judge(world, tmp_path / "world")
        if judged.truths_agree:
            break
    assert judged.truths_agree, judged.injection
    kinds = ("verdict", "host", "share")
    assert [fault for fault in judged.faults if fault.startswith(kinds)] == []
