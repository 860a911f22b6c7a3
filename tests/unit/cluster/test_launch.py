import os
import queue
import signal

from dragoman.cluster.job import Job
from dragoman.cluster.launch import local_job
from dragoman.cluster.zygote import Zygote


def test_workers_of_one_machine_talk_over_loopback(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    job = local_job(["train", "x.toml"], 2)
    assert job.environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert job.store_port == 0
    assert job.arguments == ["train", "x.toml"]


def test_every_start_has_a_secret_of_its_own():
    assert local_job([], 2).secret != local_job([], 2).secret


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    environment = local_job([], 2).environment
    assert environment == {"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "eth7"}


def test_a_job_survives_its_way_to_the_agent():
    job = local_job(["train", "ä b'c\n"], 2)
    assert Job.from_line(job.to_line()) == job
    assert "\n" not in job.to_line()


def test_a_signal_to_a_worker_that_has_just_been_born_is_not_lost():
    """It is sent the moment its process is known, when it may still be as deaf as its parent."""
    told: queue.Queue = queue.Queue()
    zygote = Zygote(os.environ, told.put)
    try:
        assert told.get(timeout=100) == {"ready": True}
        codes = []
        for number in range(30):
            zygote.fork_worker(f"worker {number}", ["lab", "--help"], {"RANK": "0"})
            os.kill(told.get(timeout=100)["born"], signal.SIGTERM)
            codes.append(told.get(timeout=100)["code"])
        # A worker may have ended by itself where this process had to wait for its turn.
        assert codes.count(-signal.SIGTERM) > 15
    finally:
        zygote.close()
