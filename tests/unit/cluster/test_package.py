import subprocess
import sys
import zipfile

from dragoman.cluster.package import pins, write_wheel
from dragoman.version import code_hash


def test_the_wheel_holds_this_very_code(tmp_path):
    wheel = write_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        archive.extractall(tmp_path / "there")
    assert "dragoman/shipped_recipes/demo.toml" in names
    assert not any("__pycache__" in name for name in names)
    said = subprocess.run(
        [sys.executable, "-c", "import dragoman.version as v; print(v.__file__, v.code_hash())"],
        env={"PYTHONPATH": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == [str(tmp_path / "there/dragoman/version.py"), code_hash()]


def test_hosts_get_the_versions_that_run_here():
    names = [pin.split("==")[0] for pin in pins()]
    assert {"torch", "numpy", "sentencepiece", "tomli-w", "ctranslate2"} <= set(names)
    assert not any("+" in pin for pin in pins())
