import socket
from dataclasses import replace

import distributed
import pytest
from unit.preparation.prepared import content
from unit.preparation.test_pipeline import two_sources

from dragoman.errors import RunError, UserError
from dragoman.preparation import dask_workers as module
from dragoman.preparation import kept, prepare
from dragoman.preparation.dask_workers import Shared, dask_workers, do_on_worker, unlike
from dragoman.preparation.plan import make_plan
from dragoman.preparation.stage import Stage
from dragoman.preparation.task import Result, Task
from dragoman.version import code_hash

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def address():
    """A cluster in this process; tests/faults has one of real processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def is_seen(self):
    """As on another machine. It is found there by its name."""
    return False


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared files", "text travels"])
@pytest.mark.usefixtures("small_slices")
def test_a_dask_cluster_gives_the_same_bytes(
    recipe, digits, address, monkeypatch, caplog, is_shared
):
    monkeypatch.setattr(kept, "KEYS_AT_ONCE", 300)
    whole = prepare(two_sources(recipe, digits, (1.0, 3.0)))
    caplog.set_level("INFO")
    if not is_shared:
        monkeypatch.setattr(Shared, "is_seen", is_seen)
    config = two_sources(recipe, digits, (1.0, 3.0), name="dask")
    by_dask = prepare(config, lambda plan: dask_workers(address, plan))
    assert content(by_dask) == content(whole)
    assert by_dask.passport.splits == whole.passport.splits
    how = "which see the files" if is_shared else "some of which do not see the files"
    assert any(f"2 Dask workers with 2 threads, {how}" in line for line in caplog.messages)
    assert not list(by_dask.folder.rglob(".*"))


def test_an_error_on_a_worker_is_the_same_sentence(recipe, digits, address):
    (digits.parent / "train.de").write_bytes(b"\xff\n" * 800)
    with pytest.raises(UserError, match=r"train\.de, line 1: not UTF-8"):
        prepare(recipe(), lambda plan: dask_workers(address, plan))


def fail(settings, inputs):
    raise ZeroDivisionError("surprise")


def give_nothing(settings, inputs):
    return Result({})


def test_a_fault_in_our_own_code_is_named(recipe, address, tmp_path):
    task = Task(fail, None, {}, Stage(tmp_path / "stage"), 0)
    with dask_workers(address, make_plan(recipe())) as workers:
        with pytest.raises(RunError, match="a Dask worker failed with ZeroDivisionError: surprise"):
            list(workers.do([task]))
        assert list(workers.do([replace(task, function=give_nothing)])) == [0]


def test_nobody_at_the_address_is_one_sentence_in_time(recipe, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address in (f"tcp://127.0.0.1:{port}", f"tls://127.0.0.1:{port}"):
        with pytest.raises(UserError, match=rf"no Dask scheduler answers at {address} \("):
            prepare(recipe(), lambda plan, a=address: dask_workers(a, plan))


def test_another_program_at_the_address_is_one_sentence_in_time(recipe, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"no Dask scheduler answers at {address} \("):
            prepare(recipe(), lambda plan: dask_workers(address, plan))


def test_a_scheduler_without_workers_is_named(recipe, monkeypatch):
    monkeypatch.setattr(module, "WORKERS_S", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        pytest.raises(UserError, match=r"has no workers; start some with `dask worker inproc"),
    ):
        prepare(recipe(), lambda plan: dask_workers(cluster.scheduler_address, plan))


def versions(**changes):
    packages = {"python": "3.11.9.final.0", **dict.fromkeys(module._PACKAGES, "1.2")}
    everywhere = {"client": packages, "scheduler": packages, "worker": packages}
    everywhere |= {who: packages | other for who, other in changes.items()}
    return {
        "client": {"packages": everywhere["client"]},
        "scheduler": {"packages": everywhere["scheduler"]},
        "workers": {"tcp://a:1": {"packages": packages}, "b": {"packages": everywhere["worker"]}},
    }


def test_equal_versions_are_alike():
    assert unlike(versions()) is None
    assert unlike(versions(worker={"python": "3.11.2.final.0"})) is None


@pytest.mark.parametrize(
    ("who", "package", "version", "named"),
    [
        ("scheduler", "distributed", "1.3", "the Dask scheduler has distributed 1.3, and here it"),
        ("worker", "sentencepiece", "2", "the Dask worker at b has sentencepiece 2, and here it"),
        ("worker", "numpy", None, "the Dask worker at b has no numpy, and here it is 1.2"),
        ("worker", "python", "3.12.1.final.0", "the Dask worker at b has Python 3.12, and"),
    ],
)
def test_other_versions_are_named(who, package, version, named):
    assert named in unlike(versions(**{who: {package: version}}))


def test_a_scheduler_of_another_version_is_refused(recipe, address, monkeypatch):
    def get_versions(self, real=distributed.Client.get_versions, **more):
        found = real(self, **more)
        found["scheduler"]["packages"]["distributed"] = "2020.1"
        return found

    monkeypatch.setattr(distributed.Client, "get_versions", get_versions)
    with pytest.raises(UserError, match=r"the Dask scheduler has distributed 2020\.1, and here"):
        prepare(recipe(), lambda plan: dask_workers(address, plan))


def test_a_worker_that_comes_later_is_checked_too(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_here", lambda: "the Dask worker at x")
    task = Task(give_nothing, None, {}, Stage(tmp_path), 0)
    with pytest.raises(RunError, match="worker at x runs other code of Dragoman"):
        do_on_worker(task, None, "other")
    unseen = Shared(tmp_path / "probe", "token", [])
    with pytest.raises(RunError, match="worker at x does not see"):
        do_on_worker(task, unseen, code_hash())


def test_files_are_shared_if_the_same_ones_are_seen(tmp_path):
    probe, source = tmp_path / "probe", tmp_path / "source"
    probe.write_text("token")
    source.write_text("text")
    status = source.stat()
    seen = Shared(probe, "token", [(source, status.st_size, status.st_mtime_ns)])
    assert seen.is_seen()
    assert not seen._replace(token="other").is_seen()
    assert not seen._replace(inputs=[(source, 5, status.st_mtime_ns)]).is_seen()
    assert not seen._replace(inputs=[(tmp_path / "nowhere", 4, 0)]).is_seen()
