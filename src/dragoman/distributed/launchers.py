"""Reads what launchers tell this process in environment variables. Without torch."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.errors import UserError

FIRST_PORT, PORTS = 20_000, 20_000
STORE_PORT = "DRAGOMAN_STORE_PORT"
SECRET = "DRAGOMAN_SECRET"
"""The secret of a start; under other launchers a user may set it for all ranks."""
HOST_NAME = "DRAGOMAN_HOST_NAME"
"""The name by which `--hosts` knows a host, set for its workers: what ssh connects to. The name
that the machine has for itself may mean nothing to others."""


@dataclass(frozen=True)
class Place:
    rank: int = 0
    ranks: int = 1
    local_rank: int = 0
    launcher: str = ""
    """Empty if this process is alone, and no other rank waits for it."""
    address: str = "127.0.0.1"
    """Where ranks meet: on the host of rank 0."""
    port: int = 0
    has_agent: bool = False
    """An agent, ours or torchrun's, has started this process and reads its exit code."""
    secret: str = ""
    """Secret of this start; empty if there is none, and heartbeats can be forged."""
    is_one_host: bool = False
    """All ranks are known to be on this machine."""

    @property
    def started_by_launcher(self) -> bool:
        return bool(self.launcher)


def place(variables: Mapping[str, str] = os.environ) -> Place:
    """Returns this process's place; our agent's variables come first, since launchers can nest."""
    for reader in (_agent, _torchrun, _slurm, _open_mpi):
        if found := reader(variables):
            return found
    return Place()


def host_name(variables: Mapping[str, str] = os.environ) -> str:
    """Returns what this host is called in all records: as the user named it, where it was named."""
    return variables.get(HOST_NAME) or socket.gethostname()


def worker_variables(
    rank: int, ranks: int, local_rank: int, workers: int, store_port: int, secret: str
) -> dict[str, str]:
    """Returns what our agent sets for a worker, read by `place`; `workers` are of this host."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(workers),
        STORE_PORT: str(store_port),
        SECRET: secret,
    }


def _agent(variables: Mapping[str, str]) -> Place | None:
    if STORE_PORT not in variables:
        return None
    return Place(
        rank=int(variables["RANK"]),
        ranks=int(variables["WORLD_SIZE"]),
        local_rank=int(variables["LOCAL_RANK"]),
        launcher="dragoman",
        port=int(variables[STORE_PORT]),
        has_agent=True,
        secret=variables[SECRET],
        is_one_host=variables["LOCAL_WORLD_SIZE"] == variables["WORLD_SIZE"],
    )


def _torchrun(variables: Mapping[str, str]) -> Place | None:
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= variables.keys():
        return None
    return Place(
        rank=int(variables["RANK"]),
        ranks=int(variables["WORLD_SIZE"]),
        local_rank=int(variables.get("LOCAL_RANK", "0")),
        launcher="torchrun",
        address=variables["MASTER_ADDR"],
        port=int(variables["MASTER_PORT"]),
        has_agent="TORCHELASTIC_RUN_ID" in variables,
        # The store outlives a restart, and heartbeats of the start before must not count.
        secret=variables.get(SECRET, "") + variables.get("TORCHELASTIC_RESTART_COUNT", ""),
    )


def _slurm(variables: Mapping[str, str]) -> Place | None:
    """Returns the place of a task of srun; a batch script itself is one process."""
    if not {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"} <= variables.keys():
        return None
    ranks = int(variables["SLURM_STEP_NUM_TASKS"])
    hosts = variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", "")
    job = f"{variables.get('SLURM_JOB_ID', '0')}.{variables['SLURM_STEP_ID']}"
    return Place(
        rank=int(variables["SLURM_PROCID"]),
        ranks=ranks,
        local_rank=int(variables.get("SLURM_LOCALID", "0")),
        launcher="srun",
        address=variables.get("MASTER_ADDR") or first_host(hosts),
        port=int(variables.get("MASTER_PORT") or port_of(job)),
        secret=variables.get(SECRET, ""),
    )


def _open_mpi(variables: Mapping[str, str]) -> Place | None:
    if not {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"} <= variables.keys():
        return None
    ranks = int(variables["OMPI_COMM_WORLD_SIZE"])
    address = variables.get("MASTER_ADDR")
    if address is None:
        if int(variables.get("OMPI_COMM_WORLD_LOCAL_SIZE", "0")) != ranks:
            raise UserError(
                "started by mpirun on several hosts, which does not set the address of rank 0; add "
                "-x MASTER_ADDR=<address of the first host> to mpirun"
            )
        address = "127.0.0.1"
    job = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid", "0")
    return Place(
        rank=int(variables["OMPI_COMM_WORLD_RANK"]),
        ranks=ranks,
        local_rank=int(variables.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")),
        launcher="mpirun",
        address=address,
        port=int(variables.get("MASTER_PORT") or port_of(job)),
        secret=variables.get(SECRET, ""),
    )


def first_host(hosts: str) -> str:
    """Returns the first host of Slurm's short form: gpu03 of `gpu[03-05,9],login1`."""
    begin = re.match(r"([^,\[]+)(?:\[([^\],-]+))?", hosts)
    if begin is None:
        raise UserError("started by srun without a list of its hosts; set MASTER_ADDR to the first")
    return begin[1] + (begin[2] or "")


def port_of(job: str) -> int:
    """Returns a port, the same for all ranks of a job, and most likely another for the next job."""
    spread = int.from_bytes(job.encode()[-8:])
    return FIRST_PORT + spread % PORTS
