"""Every Python that is announced, as far as this machine has it; `make test-pythons` does more."""

import subprocess
from pathlib import Path

import pytest
from interpreters import other_interpreters, supported_versions

SOURCE = Path(__file__).parents[2] / "src"
# Of modules that need no other package: their classes and functions are made, not only parsed.
PLAIN = "dragoman, dragoman.errors, dragoman.version, dragoman.installation, dragoman.recipes"


@pytest.mark.parametrize("version", supported_versions()[1:])
def test_the_code_is_compiled_without_a_warning(version, tmp_path):
    interpreter = other_interpreters().get(version)
    if not interpreter:
        pytest.skip(f"no Python {version} was found")
    strict = [interpreter, "-W", "error", "-X", f"pycache_prefix={tmp_path}"]
    done = subprocess.run(
        [*strict, "-m", "compileall", "-q", SOURCE], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run(
        [*strict, "-c", f"import {PLAIN}; print(dragoman.version.code_hash())"],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (len(done.stdout.strip()), done.stderr) == (64, "")
