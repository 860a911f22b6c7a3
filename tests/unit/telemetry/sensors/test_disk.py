import pytest

from dragoman.telemetry.sensors.disk import Disk


def test_the_disk_knows_what_is_free_where_the_run_is(tmp_path):
    values = Disk(tmp_path).read()
    assert 0 < values["disk/run_free_bytes"] <= values["disk/run_size_bytes"]
    with pytest.raises(FileNotFoundError):
        Disk(tmp_path / "gone").read()
