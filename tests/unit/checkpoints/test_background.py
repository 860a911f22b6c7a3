import threading

import pytest
import torch

from dragoman.checkpoints import background, storage
from dragoman.checkpoints.background import BackgroundSaver, Place
from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import all_checkpoints, newest_whole, verify
from dragoman.checkpoints.names import linked_step
from dragoman.errors import StorageError


def begin(saver, root, step, value=1.0, must=False, **place):
    weight = torch.full((4, 3), value)
    place = {"keep_last": 2, **place}
    return saver.begin(
        step,
        model={"weight": weight},
        optimizer={"weight|exp_avg": weight, "weight|step": torch.tensor(float(step))},
        state={"run": {"step": step}},
        places=[Place(root, **place)],
        must=must,
    )


@pytest.fixture
def held(monkeypatch):
    """Saves stop before they write, until the event is set."""
    go = threading.Event()
    real = background.save_snapshot

    def save_snapshot(*arguments):
        assert go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(background, "save_snapshot", save_snapshot)
    return go


def test_a_snapshot_is_written_linked_and_told_of(tmp_path):
    with BackgroundSaver(b"pieces", owner={"data": "d1"}) as saver:
        assert saver.results() == []
        assert begin(saver, tmp_path, 5, value=2.5, best_step=5)
        assert saver.finish()
        (saved,) = saver.results()
        assert saver.results() == []
    assert (saved.step, saved.root, saved.error, saved.is_news) == (5, tmp_path, None, False)
    assert saved.folder == tmp_path / "step-00000005"
    checkpoint = Checkpoint(saved.folder)
    verify(checkpoint, {"data": "d1"})
    assert saved.bytes == sum(checkpoint.sizes().values())
    assert saved.in_flight_s >= saved.copy_s + saved.write_s
    assert saved.stall_s > 0
    assert torch.equal(checkpoint.model()["weight"], torch.full((4, 3), 2.5))
    assert checkpoint.optimizer()["weight|step"] == 5
    assert checkpoint.state()["run"] == {"step": 5}
    assert checkpoint.tokenizer_model() == b"pieces"
    assert {(tmp_path / name).resolve() for name in ("latest", "best")} == {saved.folder}


def test_what_changes_after_the_copy_is_not_in_it(tmp_path, held):
    weight = torch.zeros(1000)
    with BackgroundSaver(b"") as saver:
        saver.begin(5, {"weight": weight}, {}, {}, [Place(tmp_path, 2)])
        assert saver.wait_until_copied() >= 0
        weight += 1
        assert all_checkpoints(tmp_path) == []
        held.set()
    assert newest_whole(tmp_path).model()["weight"].sum() == 0


def test_training_waits_for_the_copy_and_only_for_that(tmp_path, held, monkeypatch):
    copying = threading.Event()
    real = background._copy

    def slow_copy(*arguments):
        assert copying.wait(60)
        real(*arguments)

    class Waited(threading.Event):
        """Lets the copy be made as soon as someone waits for it."""

        def wait(self, timeout=None):
            copying.set()
            return super().wait(timeout)

    monkeypatch.setattr(background, "_copy", slow_copy)
    with BackgroundSaver(b"") as saver:
        saver._copied = Waited()
        begin(saver, tmp_path, 5)
        waited_s = saver.wait_until_copied()
        assert waited_s > 0
        assert saver.wait_until_copied() == 0
        assert saver.is_busy
        held.set()
        saver.finish()
        assert saver.results()[0].stall_s >= waited_s


def test_one_save_at_a_time_unless_it_must_be(tmp_path, held):
    with BackgroundSaver(b"") as saver:
        assert begin(saver, tmp_path, 5)
        assert not begin(saver, tmp_path, 10)
        assert not saver.finish(timeout_s=0.01)
        held.set()
        assert begin(saver, tmp_path, 15, must=True)
        assert saver.finish()
        assert [saved.step for saved in saver.results()] == [5, 15]
    assert [c.step for c in all_checkpoints(tmp_path)] == [5, 15]


def test_the_newest_stay_and_those_that_are_kept_and_no_later_ones(tmp_path):
    with BackgroundSaver(b"") as saver:
        for step in (5, 10, 15, 20):
            begin(saver, tmp_path, step, keep=[5], must=True)
        saver.finish()
        assert [c.step for c in all_checkpoints(tmp_path)] == [5, 15, 20]
        # The run has gone back: 15 and 20 are not its own any more, and would be taken for newer.
        begin(saver, tmp_path, 12, keep=[5, 20], must=True)
        saver.finish()
        assert [c.step for c in all_checkpoints(tmp_path)] == [5, 12]


def test_the_newest_that_can_be_trusted_stays(tmp_path):
    with BackgroundSaver(b"") as saver:
        for step in range(5, 105, 5):
            begin(saver, tmp_path, step, trusted_step=max(0, step - 22), must=True)
            saver.finish()
            kept = [c.step for c in all_checkpoints(tmp_path)]
            assert kept[0] <= max(5, step - 22)
            assert kept[-2:] == [step - 5, step][-len(kept) :]
            assert len(kept) <= 4


def test_the_newest_from_before_trouble_stays(tmp_path):
    with BackgroundSaver(b"") as saver:
        for step in range(5, 55, 5):
            quiet = min(step, 22)
            begin(saver, tmp_path, step, keep_last=1, quiet_step=quiet, must=True)
            saver.finish()
        assert [c.step for c in all_checkpoints(tmp_path)] == [20, 50]


def test_best_stands_for_what_was_scored_later_or_gone_back_to(tmp_path):
    with BackgroundSaver(b"") as saver:
        for step, best in ((5, None), (10, 5), (15, 15), (12, 10)):
            begin(saver, tmp_path, step, keep=[best or 0], best_step=best, must=True)
            saver.finish()
            assert linked_step(tmp_path, "best") == best
            assert linked_step(tmp_path, "latest") == step


def test_what_is_scored_later_is_kept_beside_the_newest(tmp_path):
    with BackgroundSaver(tokenizer_model=b"") as saver:
        for step, later in ((5, 5), (10, 5), (15, 5)):
            begin(saver, tmp_path, step, keep_last=1, scored_later=later, must=True)
            saver.finish()
        assert [checkpoint.step for checkpoint in all_checkpoints(tmp_path)] == [5, 15]
        begin(saver, tmp_path, 20, keep_last=1, scored_later=20, must=True)
        saver.finish()
    assert [checkpoint.step for checkpoint in all_checkpoints(tmp_path)] == [20]


def test_the_best_so_far_stays_when_a_better_one_could_not_be_saved(tmp_path, monkeypatch):
    def save_snapshot(root, snapshot):
        if snapshot.step == 10:
            raise StorageError(root, "saving a checkpoint", "No space left on device")
        return storage.save_snapshot(root, snapshot)

    monkeypatch.setattr(background, "save_snapshot", save_snapshot)
    with BackgroundSaver(b"") as saver:
        for step, best in ((5, 5), (10, 10), (15, 10), (20, 10)):
            begin(saver, tmp_path, step, keep=[best], best_step=best, must=True)
        saver.finish()
        assert linked_step(tmp_path, "best") == 5
        assert [c.step for c in all_checkpoints(tmp_path)] == [5, 15, 20]
        begin(saver, tmp_path, 25, keep=[25], best_step=25)
        saver.finish()
    assert linked_step(tmp_path, "best") == 25
    assert [c.step for c in all_checkpoints(tmp_path)] == [20, 25]


def test_a_disk_that_fails_is_told_of_once_a_reason_and_tried_again(tmp_path, monkeypatch):
    reasons = ["No space left on device"] * 2 + ["Input/output error", "", "", "Read-only"]

    def save_snapshot(root, snapshot):
        if reason := reasons[snapshot.step - 1]:
            raise StorageError(root, "saving a checkpoint", reason)
        return storage.save_snapshot(root, snapshot)

    monkeypatch.setattr(background, "save_snapshot", save_snapshot)
    with BackgroundSaver(b"") as saver:
        for step in range(1, 7):
            assert begin(saver, tmp_path, step, must=True)
        saver.finish()
        results = saver.results()
    assert [saved.error.reason if saved.error else "" for saved in results] == reasons
    assert [saved.is_news for saved in results] == [True, False, True, True, False, True]
    assert [saved.folder is not None for saved in results] == [not reason for reason in reasons]


def test_one_place_that_fails_does_not_keep_a_snapshot_from_the_other(tmp_path):
    (tmp_path / "file").touch()
    weight = torch.ones(3)
    with BackgroundSaver(b"") as saver:
        places = [Place(tmp_path / "file" / "x", 2), Place(tmp_path / "disk", 2)]
        saver.begin(5, {"weight": weight}, {}, {}, places)
        saver.finish()
        failed, saved = saver.results()
    assert isinstance(failed.error, StorageError)
    assert (failed.root, failed.folder) == (tmp_path / "file" / "x", None)
    assert saved.error is None
    assert newest_whole([place.root for place in places]).folder == saved.folder


def test_a_snapshot_that_cannot_be_taken_is_told_of_and_holds_nobody_up(tmp_path):
    with BackgroundSaver(b"") as saver:
        strange = {"weight": torch.zeros(2, dtype=torch.complex64)}
        saver.begin(5, strange, {}, {}, [Place(tmp_path, 2)])
        saver.wait_until_copied()
        saver.finish()
        (failed,) = saver.results()
        assert isinstance(failed.error, TypeError)
        assert begin(saver, tmp_path, 10)
        saver.finish()
        assert saver.results()[0].error is None
    assert [c.step for c in all_checkpoints(tmp_path)] == [10]


def test_a_link_that_cannot_be_set_does_not_hide_that_the_checkpoint_is_there(
    tmp_path, monkeypatch
):
    def point_to(root, link, folder):
        raise StorageError(root / link, "setting a link", "Input/output error")

    monkeypatch.setattr(background, "point_to", point_to)
    with BackgroundSaver(b"") as saver:
        begin(saver, tmp_path, 5)
        saver.finish()
        (saved,) = saver.results()
    assert saved.error
    verify(Checkpoint(saved.folder))
