"""The judge of `make bench-truth` itself: raw events give the true parts, lies are found."""

import json

import pytest
from truth_lab.judge import blames
from truth_lab.raw_events import read_steps, shares_over


def write_run(run, ready_s, arrived_s, steps=4, step_s=1.0):
    """Writes a run whose ranks are ready, and have all gradients, so long after a step began."""
    (run / "events").mkdir(parents=True)
    for rank, (ready, arrived) in enumerate(zip(ready_s, arrived_s, strict=True)):
        lines = [
            {
                "kind": "attempt-started",
                **{"attempt": 1, "rank": rank, "ranks": len(ready_s), "host": f"node{rank + 1}"},
            }
        ]
        for step in range(1, steps + 1):
            parts = {
                **{"data": 0.0, "forward": ready, "backward": 0.0},
                **{"communication": arrived - ready, "optimizer": 0.0},
            }
            at = {"wall_at": 100.0 + step * step_s, "monotonic_at": 5.0 + step * step_s}
            lines.append({"kind": "step", "step": step, "step_s": step_s, "parts_s": parts, **at})
        path = run / "events" / f"attempt-001-rank-{rank:04}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_shares_follow_from_when_ranks_are_ready_and_when_gradients_have_arrived(tmp_path):
    run = write_run(tmp_path / "run", ready_s=[0.2, 0.3, 0.5], arrived_s=[0.6, 0.9, 0.7])
    steps = read_steps(run)
    assert [step.step for step in steps] == [2, 3, 4], "the first one is left out"
    raw = shares_over(steps)
    assert raw.straggling == pytest.approx(0.3)
    assert raw.network == pytest.approx(0.4)
    assert raw.for_host == {"node3": pytest.approx(0.3)}


def test_a_step_that_was_done_again_counts_once(tmp_path):
    run = write_run(tmp_path / "run", ready_s=[0.2, 0.3], arrived_s=[0.6, 0.6])
    for path in list((run / "events").iterdir()):
        text = path.read_text().replace('"attempt": 1', '"attempt": 2')
        lines = [line for line in text.splitlines() if '"step": 1,' not in line]
        path.with_name(path.name.replace("001", "002")).write_text("\n".join(lines))
    assert [(step.attempt, step.step) for step in read_steps(run)] == [(2, 3), (2, 4)]


@pytest.mark.parametrize(
    "words",
    [
        "the others wait 229 ms (54 %) for node2",
        "replace node2",
        "node2 is slower than the others",
        "node1 and node2 are late together",
        "The link of node2 is slow.",
    ],
)
def test_a_host_is_blamed(words):
    assert blames(words, "node2")
    assert not blames(words, "node3")


def test_a_host_whose_figures_are_given_is_not_blamed():
    assert not blames("node2 sent 5 MB/s, as node1 did, and comes last in some steps.", "node2")
