import socket

import pytest

from dragoman.distributed.launchers import (
    HOST_NAME,
    Place,
    first_host,
    host_name,
    place,
    port_of,
)
from dragoman.errors import UserError

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NODELIST": "gpu[03-05,9]",
    "SLURM_NTASKS": "8",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "3482058753",
}


def test_without_a_launcher_a_process_is_alone():
    assert place({}) == Place(0, 1, 0, "")
    assert not place({}).started_by_launcher


def test_torchrun_says_all():
    variables = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29500",
    }
    assert place(variables) == Place(3, 4, 1, "torchrun", "10.0.0.1", 29500)
    # torchrun that srun has started on each host.
    assert place(SLURM | variables).launcher == "torchrun"


def test_srun_says_rank_and_hosts_and_all_ranks_find_the_same_port():
    found = place(SLURM)
    assert (found.rank, found.ranks, found.local_rank) == (5, 8, 1)
    assert (found.launcher, found.address) == ("srun", "gpu03")
    assert found.port == place(SLURM | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}).port
    assert place(SLURM | {"MASTER_ADDR": "10.0.0.1"}).address == "10.0.0.1"


def test_a_batch_script_without_srun_is_one_process():
    batch = {k: v for k, v in SLURM.items() if not k.startswith("SLURM_STEP")}
    assert not place(batch | {"SLURM_PROCID": "0"}).started_by_launcher


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("gpu[03-05,9],login1", "gpu03"),
        ("node7", "node7"),
        ("a1,a2", "a1"),
        ("rack2-n[1,4]", "rack2-n1"),
    ],
)
def test_slurms_short_form_of_hosts(hosts, first):
    assert first_host(hosts) == first


def test_a_missing_host_list_is_a_sentence():
    with pytest.raises(UserError, match="set MASTER_ADDR to the first"):
        first_host("")


def test_mpirun_on_one_host_needs_nothing_more():
    found = place(OPEN_MPI)
    assert (found.rank, found.ranks, found.local_rank) == (1, 2, 1)
    assert (found.launcher, found.address) == ("mpirun", "127.0.0.1")


def test_mpirun_on_several_hosts_must_say_where_rank_0_is():
    several = OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
    with pytest.raises(UserError, match="-x MASTER_ADDR="):
        place(several)
    assert place(several | {"MASTER_ADDR": "10.0.0.1"}).address == "10.0.0.1"


def test_ports_of_jobs_are_not_privileged_and_differ():
    ports = {port_of(f"{job}.0") for job in range(4000, 4100)}
    assert all(20_000 <= port < 40_000 for port in ports)
    assert len(ports) > 90


def test_a_host_goes_by_the_name_that_its_user_gave_it():
    assert host_name({HOST_NAME: "203.0.113.5"}) == "203.0.113.5"
    assert host_name({}) == socket.gethostname()
