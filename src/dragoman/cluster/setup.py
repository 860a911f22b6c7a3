"""`dragoman setup`: installs this very version on every host, in parallel."""

import logging
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.cluster.hosts import ENVIRONMENT, Cluster, Host
from dragoman.cluster.package import packages_needed, pins, write_wheel
from dragoman.cluster.preflight import on_all
from dragoman.cluster.ssh import ask, failure, quoted, ssh_command
from dragoman.console import Progress, duration
from dragoman.errors import RunError, UserError
from dragoman.version import code_hash

logger = logging.getLogger(__name__)

NO_PYTHON = 71
"""Our exit code for a host without a suitable Python."""
_LOOKED_AT = re.compile(r"\s*(Collecting|Requirement already satisfied:) ([\w.-]+)")


class PipSteps:
    """Counts how far pip is on one host, from the lines that it prints.

    It looks at each package, which may mean to download it, and installs all of them at the end
    without a word; that counts as much.
    """

    def __init__(self, packages: int, advance: Callable[[int], None]) -> None:
        self.left = 2 * packages
        self._installing, self._advance = packages, advance
        self._seen: set[str] = set()

    def read(self, line: str) -> None:
        found = _LOOKED_AT.match(line)
        if found and found[2] not in self._seen and self.left > self._installing:
            self._seen.add(found[2])
            self._go(1)

    def end(self) -> None:
        self._go(self.left)

    def _go(self, steps: int) -> None:
        self.left -= steps
        self._advance(steps)


def set_up(cluster: Cluster, extras: Sequence[str] = ()) -> None:
    """Installs on all hosts, then checks that each runs the same code as this machine."""
    wanted = pins(extras)
    packages = packages_needed(wanted)
    steps = 2 * packages * len(cluster.hosts)
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-") as folder,
        Progress("installing", "steps", steps) as progress,
        progress.ticking(),
    ):
        wheel = write_wheel(Path(folder))
        on_all(
            cluster,
            lambda host: _set_up(
                cluster, host, wheel, wanted, PipSteps(packages, progress.advance)
            ),
        )


def _set_up(
    cluster: Cluster, host: Host, wheel: Path, wanted: Sequence[str], steps: PipSteps
) -> None:
    width = max(len(host.name) for host in cluster.hosts)

    def log(text: str) -> None:
        logger.info(f"{host.name:<{width}} | {text}")

    begun = time.monotonic()
    log(f"looking for {host.interpreter}")
    _remote(cluster, host, environment_script(host))
    place = f"{host.folder}/.setup"
    arrived = f"{place}/{wheel.name}"
    log(f"copying {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)")
    _remote(
        cluster,
        host,
        f"mkdir -p {quoted(place)} && cat > {quoted(arrived)}",
        wheel.read_bytes(),
    )
    log(f"installing {', '.join(wanted)}")
    pip = f"{quoted(host.interpreter)} -m pip --disable-pip-version-check install"
    _remote(cluster, host, " ".join([pip, *map(quoted, wanted)]), on_line=steps.read)
    steps.end()
    # Without --force-reinstall pip would keep other code of the same version number.
    _remote(cluster, host, f"{pip} --no-deps --force-reinstall {quoted(arrived)}")
    facts = ask(
        cluster, host, "dragoman.cluster.probe", {"folder": host.folder, "prepared": "prepared"}
    )
    if facts["code"] != code_hash():
        raise RunError(
            f"{host.name}: still runs other code after the installation, from a folder that comes "
            f"before that of {host.interpreter}; check its PYTHONPATH"
        )
    devices = f"{facts['cuda_devices']} CUDA device(s)"
    log(
        f"ready after {duration(time.monotonic() - begun)}: Python {facts['python']}, "
        f"torch {facts['torch']}, {devices}, {facts['free_bytes'] / 1e9:,.0f} GB free"
    )


def environment_script(host: Host) -> str:
    """Returns a shell command that creates the working folder and, unless the user has one, the
    environment."""
    interpreter = quoted(host.interpreter)
    make = f"python3 -m venv {quoted(f'{host.folder}/{ENVIRONMENT}')}"
    if host.python:  # the user's own: if it is missing, that is an error
        make = f"exit {NO_PYTHON}"
    version = "import sys; sys.exit(sys.version_info < (3, 11))"
    return (
        f"mkdir -p {quoted(host.folder)} && {{ test -x {interpreter} || {make}; }} && "
        f"{{ {interpreter} -c {quoted(version)} || exit {NO_PYTHON}; }}"
    )


def _remote(
    cluster: Cluster,
    host: Host,
    script: str,
    content: bytes = b"",
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """Runs a shell command on the host; `on_line` is given each line of its output."""
    process = subprocess.Popen(
        ssh_command(cluster, host, script),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            process.stdin.write(content)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended early; its error output has the reason
        for line in process.stdout:
            on_line(line.decode(errors="replace"))
        errors = process.stderr.read().decode(errors="replace")
        code = process.wait()
    if code == 0:
        return
    if code in (NO_PYTHON, 127):
        raise UserError(
            f"{host.name}: has no Python 3.11 or newer at {host.python or 'python3'}; install one, "
            "or name it with python = in the host list"
        )
    raise failure(host, code, errors)
