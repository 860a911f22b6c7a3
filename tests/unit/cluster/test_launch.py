import os
import sys

from dragoman.cluster import launch


def test_workers_share_the_cores_and_talk_over_loopback(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(launch.psutil, "cpu_count", lambda logical: 8)
    assert launch._environment(2)["OMP_NUM_THREADS"] == "4"
    assert launch._environment(16)["OMP_NUM_THREADS"] == "1"
    assert launch._environment(2)["GLOO_SOCKET_IFNAME"] in ("lo", "lo0")


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    environment = launch._environment(2)
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["GLOO_SOCKET_IFNAME"] == "eth7"
    assert environment["PATH"] == os.environ["PATH"]


def test_the_exit_code_of_a_failing_worker_comes_home(monkeypatch):
    monkeypatch.setattr(launch.sys, "executable", sys.executable)
    assert launch.launch_local(["translate", "/nowhere", "x"], workers=2) == 2
