import io
import json

import pytest

from dragoman.cluster.transfer import files_below, read_files, serve, write_files
from dragoman.errors import CorruptFileError, UserError


def stream_of(folder):
    stream = io.BytesIO()
    counted = []
    write_files(stream, folder, files_below(folder), counted.append)
    assert sum(counted) == sum((folder / name).stat().st_size for name in files_below(folder))
    stream.seek(0)
    return stream


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "a.bin").write_bytes(bytes(range(256)) * 9000)
    (tmp_path / "data" / "deep" / "b").write_bytes(b"")
    return tmp_path / "data"


def test_a_folder_arrives_whole(folder, tmp_path):
    read_files(stream_of(folder), tmp_path / "there" / "data", lambda _: None)
    arrived = tmp_path / "there" / "data"
    assert files_below(arrived) == ["a.bin", "deep/b"]
    assert (arrived / "a.bin").read_bytes() == (folder / "a.bin").read_bytes()


def test_a_cut_stream_leaves_nothing(folder, tmp_path):
    whole = stream_of(folder).getvalue()
    with pytest.raises(EOFError):
        read_files(io.BytesIO(whole[:-10]), tmp_path / "there" / "data", lambda _: None)
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", ""])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path, name):
    stream = io.BytesIO(json.dumps({"files": [[name, 1]]}).encode() + b"\nx")
    with pytest.raises(CorruptFileError):
        read_files(stream, tmp_path / "there", lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_what_exists_on_a_host_is_not_overwritten(folder, tmp_path):
    order = json.dumps({"take": "data", "in": str(tmp_path)}).encode() + b"\n"
    with pytest.raises(UserError, match="already exists"):
        serve(io.BytesIO(order + stream_of(folder).getvalue()), io.BytesIO())
