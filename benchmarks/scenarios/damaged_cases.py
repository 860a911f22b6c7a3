"""Records that are torn, missing, newer, or hardly there; clocks that jump."""

import json
from collections.abc import Callable

import numpy as np

from dragoman.rundir import RunDir
from scenarios.life_cases import WALL
from scenarios.network_cases import FOUR, LEARNING, NETWORK_SHARE, SLOW, STEP_TIME, WHOLE
from scenarios.scenario import Scenario
from scenarios.world import Clocks, Life, Machines, Recorded, World

_NO_STEPS = {
    **dict.fromkeys(
        ("duration", "trained", "overfitting", "devices", "network", "step-time", "traffic"),
        "not known",
    ),
    # Both follow from the model alone, as long as it is said that none is there.
    "checkpoint-files": ("not known", "5 files"),
    "checkpoint-size": ("not known", "731 MB"),
}
_NO_CHECKPOINT = {"checkpoint-files": ["no checkpoint"], "checkpoint-size": ["no checkpoint"]}


def torn(run: RunDir) -> None:
    """The last line of each file ends in its middle, and one before it is rubbish."""
    for path in run.events.iterdir():
        lines = path.read_bytes().splitlines(keepends=True)
        middle = len(lines) // 2
        lines[middle : middle + 1] = [lines[middle][:37] + b"\n", b"\xff\xfe{{\x00\n"]
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])


def flipped(run: RunDir) -> None:
    """A byte here and there is not what was written: in a name, in a number, in a brace."""
    for path in run.events.iterdir():
        lines = path.read_bytes().splitlines(keepends=True)
        places = {b"percent": b"perc\xd8nt", b"forward": b"forw\xffrd", b'"loss"': b'"lo\x00s"'}
        for number, (right, wrong) in enumerate(places.items()):
            found = [place for place, line in enumerate(lines) if right in line]
            for place in found[number + 5 :: 97]:
                lines[place] = lines[place].replace(right, wrong, 1)
        path.write_bytes(b"".join(lines))


def newer(run: RunDir) -> None:
    """Of a version to come: kinds, fields and parts that nobody knows yet."""
    for path in run.events.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        for place, line in enumerate(lines):
            content = json.loads(line)
            content["mood"] = {"color": "blue"}
            if content["kind"] == "step":
                content["parts_s"]["teleportation"] = 0.0
                content["counts"]["dreams"] = 3
            lines[place] = json.dumps(content, separators=(",", ":"))
        unknown = json.dumps({"kind": "omen", "wall_at": 1.0, "monotonic_at": 1.0, "of": [1, 2]})
        path.write_text("\n".join([lines[0], unknown, *lines[1:], unknown]) + "\n", "utf-8")


def without(files: str) -> Callable[[RunDir], None]:
    def remove(run: RunDir) -> None:
        for path in run.events.glob(files):
            path.unlink()

    return remove


def with_rubbish(run: RunDir) -> None:
    """In every file beside the events."""
    run.manifest.write_text('{"data": 7}', encoding="utf-8")
    run.status.write_text("{", encoding="utf-8")
    run.evaluation("test").write_text("[]", encoding="utf-8")
    (run.checkpoints / "step-00000001").write_text("no folder", encoding="utf-8")


def with_gaps(run: RunDir) -> None:
    """A fifth of all lines was dropped, as a slow disk makes it, other ones on each rank."""
    for number, path in enumerate(sorted(run.events.iterdir())):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = np.random.default_rng(number).random(len(lines)) > 0.2
        whole = [
            line
            for line, keep in zip(lines, kept, strict=True)
            if keep or '"kind":"step"' not in line
        ]
        path.write_text("".join(whole), encoding="utf-8")


DAMAGED_CASES = [
    Scenario(
        "one rank's records are missing",
        "four hosts at 1 Gbit/s, and the file of rank 2 is gone",
        World(LEARNING, WHOLE, machines=Machines(FOUR), link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE, WALL],
        damage=without("*-rank-0002.jsonl"),
    ),
    Scenario(
        "the first rank's records are missing",
        "its file is gone, and with it all evaluations",
        World(LEARNING, WHOLE, machines=Machines(FOUR), link=SLOW),
        {"network": "network-bound", "trained": "not known", "overfitting": "not known"},
        quantities=[NETWORK_SHARE, STEP_TIME],
        damage=without("*-rank-0000.jsonl"),
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "torn lines",
        "every file ends in the middle of a line, and has rubbish in its middle",
        World(LEARNING, WHOLE, link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME],
        damage=torn,
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "flipped bytes",
        "every hundredth line holds a byte that nobody wrote",
        World(LEARNING, WHOLE, link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME, WALL],
        damage=flipped,
    ),
    Scenario(
        "newer events",
        "kinds, fields and parts of a version to come",
        World(LEARNING, WHOLE, link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME],
        damage=newer,
    ),
    Scenario(
        "wall clocks jump",
        "node-a's clock is set back by 3 h, node-b's forward by a day, during the run",
        World(
            LEARNING,
            WHOLE,
            link=SLOW,
            clocks=Clocks((0.0, 40.0), [(900.0, 0, -10_800.0), (1300.0, 1, 86_400.0)]),
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[WALL, NETWORK_SHARE, STEP_TIME],
    ),
    Scenario(
        "rubbish beside the events",
        "manifest, status and scores cannot be read",
        World(LEARNING, WHOLE, link=SLOW, recorded=Recorded(test_score=20.0)),
        {"network": "network-bound", "training-set": "not known"},
        quantities=[NETWORK_SHARE],
        damage=with_rubbish,
    ),
    Scenario(
        "nothing but a config",
        "claimed, and no worker has reported yet",
        World(LEARNING, [], recorded=Recorded(manifest=False)),
        _NO_STEPS | {"training-set": "not known", "learning-rate": ("as set", "not known")},
        says=_NO_CHECKPOINT,
    ),
    Scenario(
        "started and nothing more",
        "the ranks have met, and no step is done",
        World(LEARNING, [Life(1, 0, "")]),
        _NO_STEPS | {"learning-rate": ("as set", "not known")},
        says=_NO_CHECKPOINT,
        may_say=frozenset({"faults", "hangs"}),
    ),
    Scenario(
        "gaps in the records",
        "a fifth of the steps was never written, other ones on each rank",
        World(LEARNING, WHOLE, machines=Machines(FOUR), link=SLOW),
        {"network": "network-bound", "devices": "mostly waiting", "traffic": "as predicted"},
        quantities=[NETWORK_SHARE, STEP_TIME, WALL],
        damage=with_gaps,
    ),
    Scenario(
        "a clock an hour ahead",
        "node-b's wall clock is ahead of node-a's by an hour, all the time",
        World(LEARNING, WHOLE, link=SLOW, clocks=Clocks((0.0, 3600.0))),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[WALL, NETWORK_SHARE],
    ),
    Scenario(
        "the first attempt's records are gone",
        "only what came after step 500 is left",
        World(
            LEARNING,
            [Life(1, 500, "preempted", "asked to stop (SIGTERM)"), Life(501, 1000)],
            link=SLOW,
        ),
        {"network": "network-bound", "devices": "mostly waiting"},
        quantities=[NETWORK_SHARE],
        damage=without("attempt-001-*"),
        may_say=frozenset({"faults"}),
    ),
]
