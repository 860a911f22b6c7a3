import signal

import pytest
from processes import dragoman, start_dragoman, wait_until

from dragoman.preparation.slices import pairs_after

pytestmark = pytest.mark.timeout(300)


@pytest.mark.cluster
def test_killed_at_any_moment_the_same_command_goes_on(digits, tmp_path):
    many = tmp_path / "many.en", tmp_path / "many.de"
    for path, word in zip(many, ("one", "eins"), strict=True):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{word} {number:x} {word}\n" for number in range(450_000))
    train = 'data.train=[{kind="text",source="many.en",target="many.de"}]'
    command = ["prepare", digits, "--set", train]
    place = tmp_path / "prepared"
    killed = 0
    for slices_done in (1, 3):
        process = start_dragoman(*command)
        wait_until(lambda n=slices_done: len(list(place.glob("clean-*/*.json"))) >= n)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert killed
    done = dragoman(*command)
    assert done.returncode == 0, done.stderr
    resumed = {p.name: p.read_bytes() for p in place.glob("shards-*/*.npy")}

    other = dragoman(*command, "--set", f"data.prepared={tmp_path}/undisturbed")
    assert other.returncode == 0, other.stderr
    elsewhere = (tmp_path / "undisturbed").glob("shards-*/*.npy")
    assert resumed == {path.name: path.read_bytes() for path in elsewhere}
    assert len(resumed) == 2 * slices_of(450_000) + 4
    assert list(place.rglob(".*")) == []


def slices_of(pairs):
    count = before = 0
    while before < pairs:
        count, before = count + 1, before + pairs_after(before)
    return count
