import shutil
import threading

import pytest
from written_checkpoints import write_checkpoint

from dragoman.checkpoints import mirroring
from dragoman.checkpoints.mirror import (
    mirrored_checkpoints,
    mirrored_id,
    read_best,
    upload_checkpoint,
)
from dragoman.checkpoints.mirroring import Mirror, MirrorSettings
from dragoman.checkpoints.names import BEST, point_to
from dragoman.errors import RemoteError, UserError
from dragoman.rundir import RunDir
from dragoman.storage import Pace, Store, parse_address

ID, OTHER_ID = "ab" * 16, "cd" * 16


@pytest.fixture
def run(tmp_path):
    run = RunDir(tmp_path / "x")
    run.events.mkdir(parents=True)
    for path in (run.config, run.status):
        path.write_text(path.name)
    run.id.write_text(f"{ID}\n")
    run.events_of(1, 0).write_text("{}\n")
    return run


@pytest.fixture
def store(tmp_path):
    return Store(parse_address(f"file://{tmp_path}/mirror/x"))


def mirror_of(
    store, run, part="checkpoints", run_id=ID, keep_last=2, wait_s=60.0, attempt="1", was_read=True
):
    leads = part == "checkpoints"
    settings = MirrorSettings(
        store.address, run_id, part, keep_last, 0, wait_s, leads, attempt, was_read
    )
    return Mirror(settings, run)


def steps(store, part="checkpoints"):
    return [found.step for found in mirrored_checkpoints(store, part)]


def test_all_that_is_kept_is_there_at_the_end(store, run):
    for step in (5, 10):
        write_checkpoint(run.checkpoints, step, ID)
    point_to(run.checkpoints, BEST, "step-00000005")
    with mirror_of(store, run) as mirror:
        mirror.begin()
        write_checkpoint(run.checkpoints, 15, ID)
        mirror.look()
    assert steps(store) == [15, 10, 5]
    assert mirrored_id(store) == ID
    assert read_best(store) == 5
    names = {entry.name for entry in store.list()}
    assert {"config.toml", "status.json", "events/attempt-001-rank-0000.jsonl"} < names
    assert mirror.news() == []


def test_a_step_that_changes_is_uploaded_again_and_others_are_not(store, run, monkeypatch):
    uploaded = []
    upload = mirroring.upload_checkpoint
    monkeypatch.setattr(
        mirroring,
        "upload_checkpoint",
        lambda store, part, folder, pace: (
            uploaded.append(folder.name) or upload(store, part, folder, pace)
        ),
    )
    for seed in (0, 1, 1):
        write_checkpoint(run.checkpoints, 5, ID)
        write_checkpoint(run.checkpoints, 10, ID, seed=seed)
        with mirror_of(store, run) as mirror:
            mirror.begin()
    assert uploaded == ["step-00000010", "step-00000005", "step-00000010"]


def test_a_mirror_that_fails_is_news_once_and_again_when_it_works(store, run, monkeypatch):
    """Each try waits for the test, so that it knows how many there were."""
    monkeypatch.setattr(mirroring, "AGAIN_AFTER_S", 0.0)
    tries, fails = [], [True]
    tried, may_try = threading.Semaphore(0), threading.Semaphore(0)
    upload = mirroring.upload_checkpoint

    def upload_or_fail(*arguments):
        may_try.acquire()
        tries.append(1)
        tried.release()
        if fails[0]:
            raise RemoteError("s3://bucket/x: is full while uploading; remove something", "full")
        return upload(*arguments)

    monkeypatch.setattr(mirroring, "upload_checkpoint", upload_or_fail)
    write_checkpoint(run.checkpoints, 5, ID)
    with mirror_of(store, run) as mirror:
        mirror.begin()
        for _ in range(3):
            may_try.release()
            tried.acquire()
        fails[0] = False
        may_try.release()
        tried.acquire()
        mirror._thread.join(0.01)
        while not steps(store):
            mirror._thread.join(0.01)
        news = []
        while len(news) < 2:
            news += mirror.news()
            mirror._thread.join(0.01)
    assert [(each.step, each.is_failure) for each in news] == [(5, True), (5, False)]
    assert "is full" in news[0].message
    assert "training goes on" in news[0].message
    assert "works again" in news[1].message
    assert len(tries) == 4


def test_the_mirror_of_another_run_is_not_touched(store, run, caplog):
    store.upload("run-id", f"{OTHER_ID}\n".encode())
    write_checkpoint(run.checkpoints, 5, ID)
    mirror = mirror_of(store, run)
    mirror.begin()
    assert not mirror.finish(0.5)
    assert [entry.name for entry in store.list()] == ["run-id"]
    assert sum("another run" in record.message for record in caplog.records) == 1
    assert sum("does not hold" in record.message for record in caplog.records) == 1


def test_another_host_uploads_what_it_alone_has(store, run):
    run.events_of(1, 2).write_text("{}\n")
    run.events_of(1, 0).unlink()
    write_checkpoint(run.checkpoints, 5, ID)
    with mirror_of(store, run, part="checkpoints-of-rank-0002") as mirror:
        mirror.begin()
    assert steps(store) == []
    assert steps(store, "checkpoints-of-rank-0002") == [5]
    records = [entry.name for entry in store.list() if not entry.name.startswith("checkpoints")]
    assert records == ["events/attempt-001-rank-0002.jsonl"]


def test_of_two_machines_the_one_that_began_first_uploads_and_removes_nothing_more(
    store, run, tmp_path, caplog
):
    frozen = mirror_of(store, run, attempt="1")
    write_checkpoint(run.checkpoints, 5, ID)
    frozen._upload(is_last=False)
    elsewhere = RunDir(tmp_path / "elsewhere" / "x")
    write_checkpoint(elsewhere.checkpoints, 100, ID)
    with mirror_of(store, elsewhere, attempt="2") as mirror:
        mirror.begin()
    write_checkpoint(run.checkpoints, 10, ID)
    with frozen:
        frozen.begin()
    assert steps(store) == [100, 5]
    assert sum("another machine" in record.message for record in caplog.records) == 1


def test_another_host_waits_for_its_own_attempt_to_be_noted(store, run):
    store.upload("attempt", b"the one before\n")
    other = mirror_of(store, run, part="checkpoints-of-rank-0002")
    other._upload(is_last=False)
    store.upload("attempt", b"1\n")
    other._upload(is_last=False)
    store.upload("attempt", b"2\n")
    with pytest.raises(UserError, match="another machine"):
        other._upload(is_last=False)


def test_a_mirror_that_was_out_of_reach_and_is_newer_is_left_as_it_is(store, run, tmp_path):
    write_checkpoint(tmp_path / "there", 100, ID)
    upload_checkpoint(store, "checkpoints", tmp_path / "there" / "step-00000100", Pace(0))
    write_checkpoint(run.checkpoints, 5, ID)
    mirror = mirror_of(store, run, was_read=False)
    with pytest.raises(UserError, match="holds step 100"):
        mirror._upload(is_last=False)
    assert steps(store) == [100]
    write_checkpoint(run.checkpoints, 105, ID)  # now nothing is lost
    mirror._upload(is_last=False)
    assert steps(store)[:2] == [105, 100]
    for step in (105, 100):
        shutil.rmtree(run.checkpoints / f"step-{step:08d}", ignore_errors=True)
    write_checkpoint(run.checkpoints, 10, ID)  # a rollback
    mirror._upload(is_last=False)
    assert steps(store) == [10, 5]


def test_one_that_is_replaced_during_its_upload_is_uploaded_again(store, run, monkeypatch):
    folder = write_checkpoint(run.checkpoints, 5, ID)
    upload, uploads = mirroring.upload_checkpoint, []

    def upload_and_replace(*arguments):
        there = upload(*arguments)
        uploads.append(there.sha256)
        write_checkpoint(run.checkpoints, 5, ID, seed=1)
        return there

    monkeypatch.setattr(mirroring, "upload_checkpoint", upload_and_replace)
    mirror_of(store, run)._upload(is_last=False)
    assert len(uploads) == 2
    (found,) = mirrored_checkpoints(store, "checkpoints")
    assert found.manifest == (folder / "manifest.json").read_bytes()


def test_a_checkpoint_that_is_damaged_here_keeps_no_other_from_its_upload(store, run, caplog):
    write_checkpoint(run.checkpoints, 5, ID)
    (write_checkpoint(run.checkpoints, 10, ID) / "manifest.json").write_text("{")
    with mirror_of(store, run) as mirror:
        mirror.begin()
    assert steps(store) == [5]
    assert mirrored_id(store) == ID
    assert sum("not uploaded" in record.message for record in caplog.records) == 1


def test_reasons_that_alternate_are_each_news_once(store, run):
    mirror = mirror_of(store, run)
    for kind in ("broken", "unreachable") * 3:
        mirror._failed(RemoteError(f"s3://bucket/x: is {kind}", kind))
    assert len(mirror.news()) == 2
    mirror._works()
    mirror._failed(RemoteError("s3://bucket/x: is broken", "broken"))
    assert [each.is_failure for each in mirror.news()] == [False, True]


def test_a_request_to_stop_ends_the_wait_for_the_last_upload(store, run, monkeypatch, caplog):
    goes_on = threading.Event()
    monkeypatch.setattr(mirroring, "upload_checkpoint", lambda *_: goes_on.wait())
    write_checkpoint(run.checkpoints, 5, ID)
    mirror, asked = mirror_of(store, run), [1]  # one has ended the steps, another comes later

    def signals():
        asked.append(asked[-1] + (len(asked) > 3))
        return asked[-1]

    mirror.signals = signals
    mirror.begin()
    assert not mirror.finish(1e6)
    assert asked[-1] == 2
    assert "does not hold the last state" in caplog.text
    goes_on.set()


def test_what_never_began_has_nothing_to_finish(store, run):
    with mirror_of(store, run) as mirror:
        pass
    assert mirror.finish(0.0)
    assert store.list() == []
