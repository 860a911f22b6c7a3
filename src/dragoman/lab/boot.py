"""Boots a node inside its new namespaces: sets its name and its files, and runs its sshd.

Run as `python -m dragoman.lab.boot NAME SYSTEM SSHD_CONFIG LOG`. What it mounts is seen by
the node alone and is gone with its last process.
"""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from dragoman.lab.kernel import found_tool

# Where the machine records logins; logging in to a node is not a login to the machine.
LOGINS = ("/run/utmp", "/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog")


def main(name: str, system: Path, sshd_config: str, log: str) -> None:
    socket.sethostname(name)
    mount("-t", "tmpfs", "-o", "nosuid,nodev,mode=1777", "tmpfs", "/dev/shm")
    for file in ("hosts", "shadow"):
        mount("--bind", str(system / file), f"/etc/{file}")
    for record in LOGINS:
        if Path(record).exists():
            mount("--bind", "/dev/null", record)
    sshd = found_tool("sshd") or "sshd"
    provide_privilege_separation(sshd, sshd_config)
    os.execv(sshd, [sshd, "-f", sshd_config, "-E", log])  # sshd insists on an absolute path


def provide_privilege_separation(sshd: str, sshd_config: str) -> None:
    """Creates the empty folder in /run that Debian's sshd expects from its service."""
    errors = subprocess.run(
        [sshd, "-t", "-f", sshd_config], capture_output=True, text=True, check=False
    ).stderr
    missing = re.search(r"Missing privilege separation directory: (/run/\S+)", errors)
    if missing:
        mount("-t", "tmpfs", "-o", "nosuid,nodev,mode=755", "tmpfs", "/run")
        Path(missing[1]).mkdir(parents=True, mode=0o755)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
