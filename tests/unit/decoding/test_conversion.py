import os
import tempfile
import threading

import pytest

from dragoman.decoding import conversion
from dragoman.decoding.conversion import conversion_key, converted, is_whole
from dragoman.decoding.trained import choose
from dragoman.errors import StorageError
from dragoman.rundir import RunDir


@pytest.fixture
def run(trained):
    return RunDir(trained[1])


def test_a_conversion_is_kept_under_its_content_and_used_again(run, monkeypatch):
    chosen = choose(run, "best", 1)
    with converted(run, chosen, "float32") as folder:
        assert folder.parent == run.converted
        assert is_whole(folder)
    with converted(run, chosen, "int8") as other:
        assert other != folder
    monkeypatch.setattr(conversion, "load_model", None)  # is not called again
    with converted(run, chosen, "float32") as again:
        assert again == folder
    assert {path.name for path in run.converted.iterdir()} == {folder.name, other.name}


def test_the_key_depends_on_weights_precision_and_converter(run, monkeypatch):
    chosen = choose(run, "best", 1)
    keys = {conversion_key(chosen, "float32"), conversion_key(chosen, "int8")}
    keys.add(conversion_key(chosen._replace(checkpoints=chosen.checkpoints * 2), "float32"))
    monkeypatch.setattr(conversion, "CONVERTER", 99)
    keys.add(conversion_key(chosen, "float32"))
    assert len(keys) == 4


@pytest.mark.parametrize("damage", ["cut", "removed", "flipped", "no manifest", "empty"])
def test_a_torn_conversion_is_made_again(run, damage):
    chosen = choose(run, "best", 1)
    with converted(run, chosen, "float32") as folder:
        whole = (folder / "model.bin").read_bytes()
    file = folder / "model.bin"
    if damage == "cut":
        file.write_bytes(whole[:-1])
    elif damage == "flipped":
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    elif damage == "no manifest":
        (folder / "manifest.json").unlink()
    elif damage == "removed":
        file.unlink()
    else:
        for path in folder.iterdir():
            path.unlink()
    assert not is_whole(folder)
    with converted(run, chosen, "float32") as again:
        assert again == folder
        assert (again / "model.bin").read_bytes() == whole
    assert [path.name for path in run.converted.iterdir()] == [folder.name]


def test_a_conversion_that_fails_halfway_leaves_nothing_and_goes_to_a_temporary_folder(
    run, monkeypatch
):
    chosen = choose(run, "best", 1)
    real, places = conversion.write_model, []

    def full_disk(folder, *rest):
        places.append(folder)
        real(folder, *rest)
        if folder.is_relative_to(run.root):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(conversion, "write_model", full_disk)
    with converted(run, chosen, "float32") as folder:
        assert folder == places[1]
        assert not folder.is_relative_to(run.root)
        assert (folder / "model.bin").is_file()
    assert not folder.exists()
    assert list(run.converted.iterdir()) == []


def test_without_a_temporary_folder_either_one_sentence_says_so(run, monkeypatch):
    def refuse(*arguments, **more):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(conversion, "_write_whole", refuse)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    chosen = choose(run, "best", 1)
    with pytest.raises(StorageError, match="No usable temporary"), converted(run, chosen, "int8"):
        pass


def test_conversions_at_the_same_time_do_not_disturb_each_other(run):
    chosen = choose(run, "best", 1)
    start, found, errors = threading.Barrier(4), [], []

    def convert():
        try:
            start.wait()
            with converted(run, chosen, "float32") as folder:
                found.append((folder, is_whole(folder)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=convert) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(found) == {(run.converted / conversion_key(chosen, "float32"), True)}
    assert len(list(run.converted.iterdir())) == 1


def test_only_the_conversions_used_last_are_kept(run, monkeypatch):
    chosen = choose(run, "best", 1)
    folders = []
    for number in range(conversion.KEPT + 2):
        monkeypatch.setattr(conversion, "CONVERTER", number)
        with converted(run, chosen, "float32") as folder:
            os.utime(folder, (number, number))
            folders.append(folder)
    assert set(run.converted.iterdir()) == set(folders[-conversion.KEPT :])
