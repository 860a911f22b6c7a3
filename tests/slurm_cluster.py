"""A Slurm cluster on this machine: its real programs, two nodes with two GPUs that are none."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from processes import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
NODES = 2
PATIENCE_S = 90.0

CONFIGURATION = """\
ClusterName=two
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
GresTypes=gpu
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def obstacle() -> str:
    """Returns why there can be no cluster here; empty: there can be one."""
    if os.geteuid():
        return "a Slurm cluster of one machine is started by root"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    return f"{', '.join(missing)} not found; Debian has them in slurm-wlm" if missing else ""


@dataclass(frozen=True)
class Slurm:
    environment: dict[str, str]

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        done = subprocess.run(
            list(map(str, command)),
            check=False,
            env=self.environment,
            cwd=cwd,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def has_idle_nodes(self) -> bool:
        try:
            states = self.run("sinfo", "--noheader", "--Node", "--format=%T")
        except AssertionError:  # the controller does not listen yet
            return False
        return states.split().count("idle") == NODES

    def job(self, number: str) -> dict[str, str]:
        words = self.run("scontrol", "--oneliner", "show", "job", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Slurm]:
    """Starts the cluster, and ends its daemons and their jobs in any case."""
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    _configure(folder)
    munge = [f"--{name}={folder}/munge.{name.split('-')[0]}" for name in ("socket", "seed-file")]
    munge += [f"--key-file={folder}/munge.key", f"--pid-file={folder}/munge.pid"]
    munge += [f"--log-file={folder}/munge.log", "--force", "--foreground"]
    commands = [["munged", *munge], ["slurmctld", "-D"]]
    commands += [["slurmd", "-D", "-N", f"node{number}"] for number in range(1, NODES + 1)]
    daemons: list[subprocess.Popen[bytes]] = []
    cluster = Slurm(environment)
    try:
        for command in commands:
            daemons.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            if command[0] == "munged":
                wait_until((folder / "munge.socket").exists)
        wait_until(cluster.has_idle_nodes)
        yield cluster
    finally:
        with suppress(AssertionError):
            cluster.run("scancel", "--user=root")
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            daemon.wait(PATIENCE_S)


def _configure(folder: Path) -> None:
    (folder / "state").mkdir(parents=True)
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o600)
    gpus = [folder / f"gpu{number}" for number in range(2)]
    for gpu in gpus:
        os.mknod(gpu, 0o020666, os.makedev(1, 3))  # /dev/null under another name
    (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={folder}/gpu[0-1]\n")
    controller_port, *ports = _free_ports(1 + NODES)
    nodes = "\n".join(
        f"NodeName=node{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=16 "
        "Gres=gpu:2"
        for number, port in enumerate(ports, start=1)
    )
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(folder=folder, controller_port=controller_port, nodes=nodes)
    )


def _free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports
