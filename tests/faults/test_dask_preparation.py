"""Preparation on a real Dask scheduler with real workers, of which some die."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dask_processes import dask_scheduler, dask_workers
from processes import dragoman, sentence, wait_until
from unit.preparation.prepared import content
from unit.preparation.test_pipeline import two_sources

from dragoman.config import parse_config
from dragoman.errors import RunError
from dragoman.preparation import dask_workers as module
from dragoman.preparation import kept, prepare, slices

pytestmark = pytest.mark.timeout(300)

STAGES = ["clean", "sorted", "compared", "kept", "overlap", "sample", "shards"]
# The same sizes as in this process, for a client of its own.
CLIENT = """
import sys
from pathlib import Path
from dragoman.config import parse_config
from dragoman.preparation import kept, prepare, slices
from dragoman.preparation.dask_workers import dask_workers
address, recipe, *settings = sys.argv[1:]
slices.PAIRS_PER_SLICE, kept.KEYS_AT_ONCE = 100, 300
config = parse_config(Path(recipe).read_text(), "x", settings)
prepare(config, lambda plan: dask_workers(address, plan))
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(slices, "PAIRS_PER_SLICE", 100)
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", 300)
    monkeypatch.setattr(module, "CONNECT_S", 5)


@pytest.fixture
def two(digits):
    """A recipe with two sources of different weights, of which a part is learned from."""

    def with_settings(*overrides, name="prepared"):
        text = digits.read_text(encoding="utf-8")
        place = f"data.prepared={digits.parent}/{name}"
        return parse_config(text, "x", [place, "tokenizer.sample_lines=400", *overrides])

    return lambda name: two_sources(with_settings, digits, (1.0, 3.0), name=name)


@pytest.mark.parametrize(
    "is_shared",
    [
        pytest.param(True, id="shared files", marks=pytest.mark.cluster),
        pytest.param(False, id="text travels", marks=pytest.mark.cluster),
    ],
)
def test_a_worker_killed_in_each_stage_changes_no_byte(two, tmp_path, is_shared):
    whole = prepare(two("whole"))
    with (
        dask_scheduler(tmp_path) as scheduler,
        dask_workers(scheduler.address, 2, tmp_path, kill_in=STAGES, is_shared=is_shared),
    ):
        by_dask = prepare(two("dask"), lambda plan: module.dask_workers(scheduler.address, plan))
    assert {path.name for path in (tmp_path / "flags").iterdir()} == set(STAGES)
    assert content(by_dask) == content(whole)
    assert by_dask.passport.splits == whole.passport.splits


def test_a_worker_killed_while_it_cleans_changes_no_byte(two, tmp_path, caplog):
    whole = prepare(two("whole"))
    with (
        dask_scheduler(tmp_path) as scheduler,
        dask_workers(scheduler.address, 2, tmp_path, kill_in=["clean"]),
    ):
        by_dask = prepare(two("dask"), lambda plan: module.dask_workers(scheduler.address, plan))
    assert (tmp_path / "flags" / "clean").exists()
    assert content(by_dask) == content(whole)


@pytest.mark.cluster
def test_a_killed_scheduler_is_one_sentence_and_the_same_command_goes_on(two, tmp_path):
    whole, config = prepare(two("whole")), two("dask")
    with (
        dask_scheduler(tmp_path) as scheduler,
        dask_workers(scheduler.address, 2, tmp_path, delay_s=0.3),
    ):

        def start(plan):
            wait_and_kill(plan.clean.folder, scheduler.process)
            return module.dask_workers(scheduler.address, plan)

        with pytest.raises(RunError, match=r"scheduler at tcp://.* is gone; .* what is finished"):
            prepare(config, start)
    finished = set(config.prepared_folder.glob("clean-*/*.json"))
    assert finished
    times = {path: path.stat().st_mtime_ns for path in finished}
    with dask_scheduler(tmp_path) as again, dask_workers(again.address, 2, tmp_path):
        by_dask = prepare(config, lambda plan: module.dask_workers(again.address, plan))
    assert content(by_dask) == content(whole)
    assert {path: path.stat().st_mtime_ns for path in finished} == times


def wait_and_kill(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Kills a process once there are some results, beside whoever makes them."""
    program = (
        "import os, sys, time; from pathlib import Path\n"
        "while len(list(Path(sys.argv[1]).glob('*.json'))) < 2: time.sleep(0.05)\n"
        f"os.kill(int(sys.argv[2]), {int(signal.SIGKILL)})"
    )
    killers.append(subprocess.Popen([sys.executable, "-c", program, folder, str(process.pid)]))


killers: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _killers_end():
    yield
    while killers:
        with killers.pop() as killer:
            killer.kill()


@pytest.mark.cluster
def test_a_killed_client_goes_on_where_it_was(two, digits, tmp_path):
    whole, config = prepare(two("whole")), two("dask")
    settings = [
        f"data.prepared={config.prepared_folder}",
        "tokenizer.sample_lines=400",
        "cleaning.duplicates=exact",
        'data.train=[{kind="text",source="train.en",target="train.de",weight=1.0},'
        '{kind="text",source="small.en",target="small.de",weight=3.0}]',
    ]
    with dask_scheduler(tmp_path) as scheduler:
        words = [sys.executable, "-c", CLIENT, scheduler.address, str(digits), *settings]
        with dask_workers(scheduler.address, 2, tmp_path, delay_s=0.2):
            for stage in ("clean", "kept", "shards"):
                with subprocess.Popen(words, stderr=subprocess.PIPE) as client:
                    wait_until(lambda s=stage: is_begun(config, s) or client.poll() is not None)
                    assert client.poll() is None, client.stderr.read()
                    client.kill()
            done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    resumed = {p.name: p.read_bytes() for p in config.prepared_folder.glob("shards-*/*.npy")}
    assert resumed == {p.name: p.read_bytes() for p in whole.folder.glob("shards-*/*.npy")}


def is_begun(config, stage: str) -> bool:
    return any(config.prepared_folder.glob(f"{stage}-*/[0-9]*.json"))


def test_a_wrong_address_is_one_sentence_from_the_command_line(digits):
    done = dragoman("prepare", digits, "--dask", "host:8786")
    assert "write the scheduler's address as tcp://host:8786" in sentence(done, 2)
    both = dragoman("prepare", digits, "--dask", "tcp://h:1", "--join")
    assert "--dask does all parts" in sentence(both, 2)
