import errno
import os
import pickle
from pathlib import Path

import pytest

from dragoman.errors import (
    ConfigError,
    CorruptFileError,
    FailedElsewhereError,
    LostPeerError,
    StorageError,
    UserError,
    storage_errors,
)


def test_what_the_user_can_change_ends_with_2_and_the_rest_with_1():
    assert {error.exit_code for error in (UserError, ConfigError)} == {2}
    assert {error.exit_code for error in (CorruptFileError, StorageError, LostPeerError)} == {1}
    assert FailedElsewhereError(2).exit_code == 2


def test_a_refusal_to_write_names_the_path_and_the_reason(tmp_path):
    with (
        pytest.raises(StorageError, match="No space left on device") as caught,
        storage_errors(tmp_path, "saving"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (caught.value.path, caught.value.doing) == (tmp_path, "saving")


def test_nested_the_outermost_speaks():
    with (
        pytest.raises(StorageError) as caught,
        storage_errors(Path("model"), "saving"),
        storage_errors(Path(".temporary"), "renaming"),
    ):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert (caught.value.path, caught.value.doing) == (Path("model"), "saving")
    assert caught.value.reason == "Input/output error"
    assert ".temporary" not in str(caught.value)


def test_other_errors_pass():
    with pytest.raises(KeyError), storage_errors(Path("x"), "saving"):
        raise KeyError("x")


def test_a_refusal_comes_whole_out_of_another_process():
    error = StorageError(Path("/data"), "saving", "No space left on device")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reason) == (str(error), error.reason)
