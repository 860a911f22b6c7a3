"""Hosts of a lab: reached by ssh, killed, paused, started again, with a disk that fills up."""

import subprocess
import sys
import tomllib

import pytest
from labs import Talk, lab, ssh, start
from processes import wait_until

from dragoman.errors import UserError

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def whole():
    """For tests that break nothing."""
    with lab(nodes=2) as it:
        yield it


def test_hosts_are_reached_by_name_from_the_machine_and_from_each_other(whole):
    for name, other in (("node1", "node2"), ("node2", "node1")):
        assert ssh(whole, name, "hostname").stdout == f"{name}\n"
        onward = ssh(whole, name, f"ssh -F {whole.ssh_config} {other} 'hostname; echo $SSH_CLIENT'")
        hostname, client = onward.stdout.splitlines()
        assert hostname == other
        assert client.split()[0] == str(whole.node(name).address)
        assert ssh(whole, name, f"getent hosts {other}").stdout.split()[0] == str(
            whole.node(other).address
        )


def test_the_host_list_says_how_to_reach_and_what_to_run(whole):
    listed = tomllib.loads(whole.hosts.read_text(encoding="utf-8"))
    assert listed["ssh_config"] == "ssh_config"
    for number, host in enumerate(listed["hosts"], 1):
        assert host == {
            "name": f"node{number}",
            "address": str(whole.node(f"node{number}").address),
            "python": sys.executable,
            "folder": str(whole.folder / f"node{number}"),
            "devices": 1,
        }
    assert ssh(whole, "node1", f"{sys.executable} -c 'import dragoman'").returncode == 0


def test_a_key_of_another_lab_or_host_is_refused(whole):
    with lab(nodes=1) as other:
        options = ["-o", "BatchMode=yes", "-o", f"HostName={whole.node('node1').address}"]
        command = ["ssh", "-F", other.ssh_config, *options, "node1", "true"]
        mistaken = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Host key verification failed" in mistaken.stderr
        trusting = [
            *options,
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ]
        command = ["ssh", "-F", other.ssh_config, *trusting, "node1", "true"]
        stranger = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Permission denied (publickey)" in stranger.stderr


def test_hosts_see_only_their_own_network(whole):
    links = ssh(whole, "node1", "ls /sys/class/net").stdout.split()
    assert sorted(links) == ["eth0", "lo"]
    routes = ssh(whole, "node1", "ip route show").stdout.splitlines()
    assert [route.split()[0] for route in routes] == [str(whole.layout.network)]
    # 192.0.2.0/24 is nobody's; there is no way out of the lab to look for whole.
    outside = start(whole, "node1", "bash", "-c", "</dev/tcp/192.0.2.55/9")
    assert outside.wait() == 1


def test_a_command_runs_in_the_hosts_folder_and_gives_its_exit_code(whole):
    assert whole.exec("node1", ["sh", "-c", "touch here; hostname > name; exit 7"]) == 7
    assert (whole.node("node1").folder / "here").exists()
    assert (whole.node("node1").folder / "name").read_text() == "node1\n"
    assert whole.exec("1", ["sh", "-c", "kill -9 $$"]) == 137


def test_a_killed_host_loses_all_processes_and_can_be_started_again():
    with lab(nodes=2) as it:
        line = Talk(it, "node1", "node2")
        wait_until(lambda: len(line.heard) > 5)
        # One that ignores what can be ignored, in a session of its own.
        stubborn = start(it, "node2", "setsid", "sh", "-c", "trap '' TERM HUP INT; sleep 1000; :")
        wait_until(lambda: len(it.status(over_s=0)[1].processes) >= 4)
        it.kill("node2")
        assert line.hearing.wait() == -9
        assert stubborn.wait() == -9
        assert line.counting.wait() == 1, "the other side is told, as by a host that goes on"
        first, second = it.status(over_s=0)
        assert (first.is_running, second.is_running) == (True, False)
        assert "Connection refused" in ssh(it, "node2", "true").stderr
        with pytest.raises(UserError, match="dragoman lab boot node2"):
            it.exec("node2", ["true"])
        it.boot("node2")
        assert ssh(it, "node2", "hostname").stdout == "node2\n"
        with pytest.raises(UserError, match="already running"):
            it.boot("node2")


def test_a_host_that_loses_power_is_silent_and_comes_back():
    with lab(nodes=2) as it:
        line = Talk(it, "node1", "node2")
        wait_until(lambda: len(line.heard) > 5)
        it.cut("node2")
        it.kill("node2")
        it.boot("node2")
        assert line.counting.poll() is None, "nobody has told it yet"
        it.heal("node2")
        assert line.counting.wait() == 1
        assert ssh(it, "node2", "hostname").stdout == "node2\n"


def test_a_paused_host_stands_still_and_goes_on_where_it_was():
    with lab(nodes=3) as it:
        line, other = Talk(it, "node1", "node2"), Talk(it, "node1", "node3")
        wait_until(lambda: min(len(line.heard), len(other.heard)) > 5)
        it.pause("node2")
        nodes = it.status(over_s=0)
        assert [node.is_paused for node in nodes] == [False, True, False]
        assert {process.state for process in nodes[1].processes} == {"T"}
        heard, others = len(line.heard), len(other.heard)
        wait_until(lambda: len(other.heard) > others + 40)
        assert len(line.heard) == heard
        it.resume("node2")
        wait_until(lambda: len(line.heard) > heard + 40)
        assert line.is_whole()
        assert not it.status(over_s=0)[1].is_paused


def test_a_small_disk_fills_up_for_its_host_alone():
    fill = ["sh", "-c", "mkdir -p runs && head -c 3000000 /dev/zero > runs/file"]
    with lab(nodes=2) as it:
        place = it.disk("node1", 2_000_000)
        assert place == it.node("node1").folder / "runs"
        assert it.exec("node1", fill) != 0
        assert it.exec("node2", fill) == 0
        assert 1_900_000 < (place / "file").stat().st_size < 2_100_000, "the machine sees it too"
        disk = it.status(over_s=0)[0].disk
        assert (disk.size_bytes // 10_000, disk.free_bytes) == (200, 0)
        with pytest.raises(UserError, match="holds files"):
            it.disk("node2", 2_000_000)
        it.disk("node1", 4_000_000)
        assert it.exec("node1", fill) == 0, "a larger disk keeps what is on it"
        it.kill("node1")
        it.boot("node1")
        assert it.exec("node1", ["test", "-s", "runs/file"]) == 0, "a disk outlives its host"
        it.disk("node1", None)
        assert list(place.iterdir()) == []


def test_two_hosts_share_neither_memory_files_nor_ports(whole):
    assert whole.exec("node1", ["sh", "-c", "echo 1 > /dev/shm/mark"]) == 0
    assert whole.exec("node1", ["test", "-e", "/dev/shm/mark"]) == 0
    assert whole.exec("node2", ["test", "-e", "/dev/shm/mark"]) == 1
    serve = [sys.executable, "-c", "import socket; socket.create_server(('127.0.0.1', 7000))"]
    assert [whole.exec(node, serve) for node in ("node1", "node2")] == [0, 0]
    hold = serve[2] + ".accept()"
    held = start(whole, "node1", sys.executable, "-c", hold)
    wait_until(lambda: whole.exec("node1", ["bash", "-c", "</dev/tcp/127.0.0.1/7000"]) == 0)
    assert held.wait() == 0


def test_a_login_does_not_run_what_the_machines_owner_does_at_logins(whole):
    # Bash reads ~/.bashrc in sessions of sshd, but not in a shell inside a shell.
    assert int(ssh(whole, "node1", "echo $SHLVL").stdout) > 1


def test_status_lists_what_runs_on_each_host():
    with lab(nodes=2) as it:
        start(it, "node2", "sleep", "1234")
        wait_until(lambda: any("sleep 1234" in p.command for p in it.status(over_s=0)[1].processes))
        first, _ = it.status(over_s=0)
        assert [process.command.split()[0] for process in first.processes] == ["sshd:"]


def test_under_sudo_the_hosts_belong_to_the_one_who_called(monkeypatch):
    monkeypatch.setenv("SUDO_USER", "nobody")
    with lab(nodes=1) as it:
        assert it.exec("node1", ["sh", "-c", "id -un > who; mkdir runs"]) == 0
        folder = it.node("node1").folder
        assert (folder / "who").read_text() == "nobody\n"
        assert {path.owner() for path in (folder, it.folder / "key", folder / "who")} == {"nobody"}
        assert "    User nobody\n" in it.ssh_config.read_text()
