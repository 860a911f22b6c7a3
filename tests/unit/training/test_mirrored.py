import shutil

import pytest
from object_server import PREFIXES, credentials, make_bucket, s3_server
from recorded import events

from dragoman.checkpoints.mirror import mirrored_checkpoints, read_best
from dragoman.errors import RunError
from dragoman.storage import Store, parse_address
from dragoman.telemetry.events import Incident
from dragoman.telemetry.read.events import attempts_so_far

MIRROR = "checkpoints.mirror=s3://bucket/{}"


@pytest.fixture(scope="module")
def port():
    with s3_server() as port:
        make_bucket(port, "bucket")
        yield port


@pytest.fixture
def mirror(port, monkeypatch, request):
    """The setting of a mirror of this test's own, which the environment lets it reach."""
    import os

    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    for name, value in credentials(port).items():
        monkeypatch.setenv(name, value)
    return MIRROR.format(request.node.name)


def store_of(mirror, name="run"):
    return Store(parse_address(f"{mirror.partition('=')[2]}/{name}"))


def weights(run):
    return (run.checkpoints / "latest" / "model.safetensors").read_bytes()


def test_a_new_machine_goes_on_from_the_mirror_bit_for_bit(run_with, mirror):
    _, straight = run_with(name="straight")
    _, run = run_with(mirror, "training.steps=12")
    assert [i for i in events(run, Incident) if i.category == "mirror"] == []
    shutil.rmtree(run.root)  # and with it the machine
    ending, run = run_with(mirror)
    assert ending.state == "finished"
    assert weights(run) == weights(straight)
    assert attempts_so_far(run) == 2
    there = [found.step for found in mirrored_checkpoints(store_of(mirror), "checkpoints")]
    here = sorted((int(p.name[5:]) for p in run.checkpoints.glob("step-*")), reverse=True)
    assert there[: len(here)] == here
    assert read_best(store_of(mirror)) == int((run.checkpoints / "best").readlink().name[5:])


def test_damaged_copies_are_skipped_and_never_loaded(run_with, mirror):
    _, run = run_with(mirror, "training.steps=10")
    store = store_of(mirror)
    newest, older = [found.step for found in mirrored_checkpoints(store, "checkpoints")][:2]
    name = f"checkpoints/step-{newest:08d}/model.safetensors"
    content = bytearray(store.read(name))
    content[len(content) // 2] ^= 1
    store.upload(name, bytes(content))
    shutil.rmtree(run.root)
    _, run = run_with(mirror, "training.steps=10")
    assert (run.checkpoints / f"step-{older:08d}").is_dir()
    assert weights(run) != bytes(content)
    shutil.rmtree(run.root)
    for found in [*mirrored_checkpoints(store, "checkpoints")]:
        store.upload(f"checkpoints/step-{found.step:08d}/state.json", b"x" * 10)
    for found in [*mirrored_checkpoints(store, "checkpoints")]:
        pytest.fail(f"step {found.step} has lost its state")


def test_a_mirror_without_a_whole_checkpoint_stops_the_run(run_with, mirror):
    _, run = run_with(mirror, "training.steps=5")
    store = store_of(mirror)
    for found in [*mirrored_checkpoints(store, "checkpoints")]:
        name = f"checkpoints/step-{found.step:08d}/state.json"
        store.upload(name, bytes(store.size(name)))
    shutil.rmtree(run.root)
    with pytest.raises(RunError, match="is intact"):
        run_with(mirror, "training.steps=5")
