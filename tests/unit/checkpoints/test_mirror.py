import random
import shutil
from contextlib import suppress

import pytest
from object_server import PREFIXES, credentials, make_bucket, proxy_to, s3_server
from written_checkpoints import contents, write_checkpoint

from dragoman.checkpoints import mirror
from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import verify
from dragoman.checkpoints.mirror import (
    fetch_checkpoint,
    fetch_first_records,
    fetch_later_records,
    fetch_records,
    fetch_run,
    mirror_address,
    mirrored_checkpoints,
    mirrored_id,
    part_of_rank,
    prune_mirror,
    read_best,
    records_of,
    refuse_another_run,
    upload_checkpoint,
    write_best,
)
from dragoman.checkpoints.schema import read_manifest
from dragoman.errors import CorruptFileError, RemoteError, UserError
from dragoman.rundir import RunDir
from dragoman.storage import Pace, Patience, Store, parse_address

ID, OTHER_ID = "ab" * 16, "cd" * 16
PART = "checkpoints"
FREELY = Pace(0)
HASTY = Patience(retries=0, retry_s=1.0, connect_s=2.0, request_s=5.0)


@pytest.fixture
def store(tmp_path):
    return Store(parse_address(f"file://{tmp_path}/mirror/x"))


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"


def steps(store, part=PART):
    return [found.step for found in mirrored_checkpoints(store, part)]


def test_a_checkpoint_comes_back_as_it_was(store, here, tmp_path):
    folder = write_checkpoint(here, 5, ID)
    there = upload_checkpoint(store, PART, folder, FREELY)
    assert there.bytes == sum(len(content) for content in contents(folder).values())
    (found,) = mirrored_checkpoints(store, PART)
    assert found == there
    back = fetch_checkpoint(store, PART, found, tmp_path / "back")
    assert contents(back) == contents(folder)
    verify(Checkpoint(back), {"id": ID})
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["step-00000005"]


def test_without_its_manifest_nothing_is_there(store, here):
    folder = write_checkpoint(here, 5, ID)
    upload_checkpoint(store, PART, folder, FREELY)
    store.delete([f"{PART}/step-00000005/manifest.json"])
    assert steps(store) == []


def test_a_copy_that_lacks_something_is_skipped(store, here):
    for step in (5, 10, 15, 20):
        upload_checkpoint(store, PART, write_checkpoint(here, step, ID), FREELY)
    store.delete([f"{PART}/step-00000020/state.json"])
    store.upload(f"{PART}/step-00000015/model.safetensors", b"short")
    store.upload(f"{PART}/step-00000010/manifest.json", b"{")
    assert steps(store) == [5]


def test_content_that_has_changed_is_refused(store, here, tmp_path):
    folder = write_checkpoint(here, 5, ID)
    upload_checkpoint(store, PART, folder, FREELY)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[7] ^= 1
    store.upload(f"{PART}/step-00000005/model.safetensors", bytes(content))
    (found,) = mirrored_checkpoints(store, PART)
    with pytest.raises(CorruptFileError):
        fetch_checkpoint(store, PART, found, tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


def test_a_step_that_is_saved_again_replaces_the_one_before(store, here, tmp_path):
    upload_checkpoint(store, PART, write_checkpoint(here, 5, ID), FREELY)
    again = write_checkpoint(here, 5, ID, seed=1)
    upload_checkpoint(store, PART, again, FREELY)
    (found,) = mirrored_checkpoints(store, PART)
    assert contents(fetch_checkpoint(store, PART, found, tmp_path / "back")) == contents(again)


def test_one_that_is_gone_meanwhile_leaves_what_is_there(store, here):
    folder = write_checkpoint(here, 5, ID)
    upload_checkpoint(store, PART, folder, FREELY)
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError):
        upload_checkpoint(store, PART, folder, FREELY)
    assert steps(store) == [5]


def test_what_is_no_longer_kept_here_goes_but_the_newest(store, here):
    for step in (5, 10, 15, 20, 25):
        upload_checkpoint(store, PART, write_checkpoint(here, step, ID), FREELY)
    store.upload(f"{PART}/step-00000012/state.json", b"half an upload")
    # Step 5 is the best one; the run has rolled back from 25 to 20.
    assert prune_mirror(store, PART, [5, 20], keep_last=2) == [10, 12, 25]
    assert steps(store) == [20, 15, 5]


def test_where_nothing_is_left_here_all_stays_there(store, here):
    upload_checkpoint(store, PART, write_checkpoint(here, 5, ID), FREELY)
    assert prune_mirror(store, PART, [], keep_last=1) == []
    assert steps(store) == [5]


def test_one_that_is_replaced_while_it_is_opened_counts_as_gone(store, here, monkeypatch):
    folder = write_checkpoint(here, 5, ID)

    def replace_it(folder):
        found = read_manifest(folder)
        write_checkpoint(here, 5, ID, seed=1)
        return found

    monkeypatch.setattr(mirror, "read_manifest", replace_it)
    with pytest.raises(FileNotFoundError):
        upload_checkpoint(store, PART, folder, FREELY)
    assert steps(store) == []


def test_one_that_is_damaged_here_is_not_uploaded(store, here):
    folder = write_checkpoint(here, 5, ID)
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CorruptFileError, match=r"model\.safetensors"):
        upload_checkpoint(store, PART, folder, FREELY)
    assert store.list() == []


def test_the_best_one_is_known(store):
    assert read_best(store) is None
    write_best(store, 15)
    assert read_best(store) == 15


def test_a_mirror_belongs_to_one_run(store):
    assert mirrored_id(store) == ""
    store.upload("run-id", f"{ID}\n".encode())
    assert mirrored_id(store) == ID
    refuse_another_run(store, ID, ID)
    refuse_another_run(store, ID, "")
    with pytest.raises(UserError, match="another run") as caught:
        refuse_another_run(store, ID, OTHER_ID)
    assert ID[:8] in str(caught.value)
    store.upload("run-id", b"../..")
    with pytest.raises(CorruptFileError):
        mirrored_id(store)


def test_an_id_that_was_lost_is_that_of_the_newest_checkpoint(store, here):
    upload_checkpoint(store, PART, write_checkpoint(here, 5, ID), FREELY)
    assert mirrored_id(store) == ID


def test_a_manifest_or_a_best_one_that_is_enormous_is_skipped(store, here):
    for step in (5, 10):
        upload_checkpoint(store, PART, write_checkpoint(here, step, ID), FREELY)
    store.upload(f"{PART}/step-00000010/manifest.json", b" " * (mirror.MOST_MANIFEST_BYTES + 1))
    store.upload(f"{PART}/best", b"x" * 10_000)
    assert steps(store) == [5]
    assert read_best(store) is None


def test_a_run_is_not_its_own_mirror(tmp_path):
    run = RunDir(tmp_path / "runs" / "x")
    with pytest.raises(UserError, match="where the run itself is"):
        mirror_address(f"file://{tmp_path}/runs", run)


def write_records(store, *names):
    for name in names:
        store.upload(name, f"{ID}\n".encode() if name == "run-id" else b"there")


def test_other_objects_and_markers_of_folders_are_no_records(store, tmp_path):
    write_records(store, "run-id", "config.toml", "events", "letter.txt", "logs/a")
    fetch_records(store, tmp_path / "back")
    assert {path.name for path in (tmp_path / "back").iterdir()} == {"run-id", "config.toml"}


def test_first_records_are_marked_until_all_have_come(store, tmp_path, monkeypatch):
    write_records(store, "run-id", "config.toml", "events/attempt-001-rank-0000.jsonl")
    download, root = Store.download, tmp_path / "back"

    def stop_at_events(self, name, path):
        if name.startswith("events"):
            path.parent.mkdir()
            (path.parent / f".{path.name}-1.part").touch()
            raise RemoteError("the connection broke", "broken")
        download(self, name, path)

    monkeypatch.setattr(Store, "download", stop_at_events)
    with pytest.raises(RemoteError):
        fetch_first_records(store, root)
    assert (root / mirror.ARRIVING).exists()
    monkeypatch.undo()
    fetch_first_records(store, root)
    assert [path.name for path in root.glob(".*")] == []
    assert [path.name for path in (root / "events").iterdir()] == ["attempt-001-rank-0000.jsonl"]
    assert (root / "run-id").exists()


def test_records_of_attempts_that_were_made_elsewhere_come_and_own_ones_stay(store, here):
    run = RunDir(here)
    events = [run.events_of(attempt, 0) for attempt in (1, 2)]
    events[0].parent.mkdir(parents=True)
    for path in (events[0], run.id, run.manifest):
        path.write_text("here")
    write_records(store, "run-id", "manifest.json", "events/attempt-001-rank-0000.jsonl")
    assert not fetch_later_records(store, run)
    assert run.manifest.read_text() == "here"
    write_records(store, "events/attempt-002-rank-0000.jsonl")
    assert fetch_later_records(store, run)
    assert [path.read_text() for path in events] == ["here", "there"]
    assert (run.id.read_text(), run.manifest.read_text()) == ("here", "there")


def test_of_checkpoints_names_and_sizes_come_with_the_records(store, here, tmp_path):
    write_records(store, "run-id", "config.toml")
    for step in (5, 10):
        folder = write_checkpoint(here, step, ID)
        upload_checkpoint(store, PART, folder, FREELY)
    write_best(store, 5)
    back = tmp_path / "back"
    fetch_run(store.address, back)
    assert Checkpoint(back / PART / folder.name).sizes() == Checkpoint(folder).sizes()
    assert (back / PART / "best").resolve().name == "step-00000005"


def test_records_travel_without_checkpoints(store, here, tmp_path):
    run = RunDir(here)
    (here / "events").mkdir(parents=True)
    run.events_of(1, 0).write_text("{}\n")
    for path in (run.config, run.manifest, run.status, run.id):
        path.write_text(path.name)
    write_checkpoint(run.checkpoints, 5, ID)
    assert records_of(run)[-1] == run.id
    for path in records_of(run):
        store.upload(path.relative_to(run.root).as_posix(), path.read_bytes())
    upload_checkpoint(store, PART, run.checkpoints / "step-00000005", FREELY)
    store.upload("other/file", b"")
    found = fetch_records(store, tmp_path / "back")
    assert {"config.toml", "run-id", "events/attempt-001-rank-0000.jsonl"} < {*found}
    assert found[-1] == "run-id"
    back = [p.relative_to(tmp_path / "back").as_posix() for p in (tmp_path / "back").rglob("*.*")]
    assert sorted(back) == sorted(name for name in found if "." in name)
    assert not (tmp_path / "back" / "checkpoints").exists()


def test_an_address_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        fetch_run(parse_address(f"file://{tmp_path}/nothing"), tmp_path / "back")
    assert list(tmp_path.iterdir()) == []  # nothing was made by looking


def test_a_run_has_its_place_in_the_mirror(tmp_path):
    run = RunDir(tmp_path / "runs" / "x")
    assert str(mirror_address("s3://bucket/runs", run)) == "s3://bucket/runs/x"
    with pytest.raises(UserError, match="cannot be written"):
        mirror_address("https://host/runs", run)
    assert part_of_rank(0) == "checkpoints"
    assert part_of_rank(4) == "checkpoints-of-rank-0004"


@pytest.mark.parametrize("uploads", [12, pytest.param(100, marks=pytest.mark.cluster)])
def test_of_uploads_cut_anywhere_none_is_torn(uploads, here, tmp_path, monkeypatch):
    """Each step is saved twice, so that a cut may also come while an old one is replaced."""
    import os

    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    chance = random.Random(23)
    size, cut, whole = 20_000, 0, 0
    with s3_server() as port, proxy_to(port) as proxy:
        make_bucket(port, "bucket")
        for name, value in credentials(proxy.port).items():
            monkeypatch.setenv(name, value)
        store = Store(parse_address("s3://bucket/x"), HASTY)
        for number in range(uploads):
            step = 1 + number // 2
            folder = write_checkpoint(here, step, ID, size, seed=number % 2)
            proxy.break_after = chance.randrange(5 * size)
            try:
                upload_checkpoint(store, PART, folder, FREELY)
                whole += 1
            except RemoteError:
                cut += 1
            proxy.heal()
            for found in mirrored_checkpoints(store, PART):
                if found.step == step:
                    # Whole, and the one that was saved last: never a mixture, never the old one.
                    back = fetch_checkpoint(store, PART, found, tmp_path / "back")
                    assert contents(back) == contents(folder)
                break
            if number % 6 == 5:  # the way back breaks, too
                proxy.truncate_after = chance.randrange(size)
                with suppress(RemoteError):
                    for found in mirrored_checkpoints(store, PART):
                        fetch_checkpoint(store, PART, found, tmp_path / "torn")
                proxy.heal()
                for path in (tmp_path / "torn").glob("step-*"):
                    verify(Checkpoint(path), {"id": ID})
    assert cut > uploads // 3
    assert whole > uploads // 20
