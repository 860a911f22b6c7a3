import socket

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from dragoman.distributed.group import Group, join, open_store, pick_device, reason_of
from dragoman.distributed.pulse import Pulse
from dragoman.distributed.seal import Seal
from dragoman.errors import FailedElsewhereError, LostPeerError, UserError

ALONE = Group(0, 1, 0, torch.device("cpu"))


def test_alone_every_collective_is_the_identity():
    assert ALONE.leads
    assert ALONE.sums([1.5, -2.0]) == [1.5, -2.0]
    assert ALONE.broadcast({"step": 3}) == {"step": 3}
    assert ALONE.gather("x") == ["x"]
    assert ALONE.on_rank_0(lambda: 7) == 7


def test_what_fails_on_the_leader_fails_with_its_own_error():
    def fails():
        raise UserError("the recipe is wrong")

    with pytest.raises(UserError, match="the recipe is wrong"):
        ALONE.on_rank_0(fails)


def test_a_process_without_a_launcher_is_the_only_rank(monkeypatch):
    for name in ("RANK", "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    with join("cpu") as group:
        assert (group.rank, group.ranks, group.host) == (0, 1, socket.gethostname())
        assert group.device == torch.device("cpu")


def test_a_device_that_is_not_there_is_refused_with_what_there_is():
    assert pick_device("cpu", local_rank=5) == torch.device("cpu")
    count = torch.cuda.device_count()
    with pytest.raises(UserError, match=rf"worker {count} .* {count} CUDA"):
        pick_device("cuda", local_rank=count)


def test_keys_of_another_start_are_out_of_reach():
    keeper = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ours, theirs = (open_store("127.0.0.1", keeper.port, Seal(secret)) for secret in "ab")
    ours.set("key", "value")
    assert open_store("127.0.0.1", keeper.port, Seal("a")).get("key") == b"value"
    assert not theirs.check(["key"])


def test_a_meeting_place_that_rank_0_cannot_open_is_named_with_what_to_set(monkeypatch):
    tasks = {"PROCID": "0", "LOCALID": "0", "STEP_ID": "0", "STEP_NUM_TASKS": "2"}
    for name, value in (tasks | {"JOB_ID": "1", "STEP_NODELIST": "nowhere.invalid"}).items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    with pytest.raises(UserError, match=r"nowhere\.invalid.* not known here; set MASTER_ADDR"):
        join("cpu").__enter__()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        with pytest.raises(UserError, match=r"in use.*; free it, or set MASTER_ADDR"):
            join("cpu").__enter__()


BROKEN = RuntimeError("[gloo] Connection closed by peer [10.0.0.2]:4711")


def test_a_broken_connection_is_explained_by_what_the_heartbeats_know():
    explained = reason_of(BROKEN, Pulse(0, 1, "here"))
    assert isinstance(explained, LostPeerError)
    assert "another rank is gone" in str(explained)


def test_a_rank_that_reports_its_own_failure_is_left_to_report_it():
    class Informed(Pulse):
        def find_lost_rank(self):
            return FailedElsewhereError(2)

    reason = reason_of(BROKEN, Informed(0, 1, "here"))
    assert isinstance(reason, FailedElsewhereError)
    assert reason.exit_code == 2


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), KeyboardInterrupt()])
def test_other_errors_stay_what_they_are(error):
    assert reason_of(error, Pulse(0, 1, "here")) is error
