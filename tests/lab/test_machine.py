"""What a lab leaves on the machine: nothing, whatever happened to it, and no trouble for others."""

import json
import subprocess
import sys

import pytest
from labs import lab, new_name, on_own_machine, skip_without_lab, ssh

from dragoman.cli import main
from dragoman.errors import RunError, UserError
from dragoman.lab import Lab, lab_names, remove_lab
from dragoman.lab.layout import LABS

pytestmark = pytest.mark.timeout(120)

# Between two looks at the machine, each part of the test; all else is the same for all of them.
LOOK = """
import json, os, subprocess, sys, time
from pathlib import Path
from dragoman.lab import Lab, lab_names, remove_lab
from dragoman.lab.layout import LABS

def shown(*command):
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout or "[]")

def processes():
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        if state != "Z":
            found[int(folder.name)] = (folder / "cmdline").read_text()
    return found

def mounts():
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]

# Of labs elsewhere, which are under way; the first namespace of a machine makes /run/netns, which
# any later one needs too.
others = {place for place in mounts() if "dragoman-lab" in place} | {"/run/netns"}

def look():
    return {
        "links": shown("ip", "-json", "address", "show"),
        "routes": shown("ip", "-json", "route", "show", "table", "all"),
        "rules": shown("ip", "-json", "rule", "show"),
        "neighbors": shown("ip", "-json", "neighbor", "show"),
        "queues": shown("tc", "-json", "qdisc", "show"),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "namespaces": sorted(os.listdir("/run/netns")) if Path("/run/netns").exists() else [],
        "mounts": sorted(place for place in mounts() if place not in others),
        "files": sorted(map(str, LABS.parent.rglob("*"))),
        "ssh": sorted((str(p), p.stat().st_mtime) for p in Path("~/.ssh").expanduser().rglob("*")),
        "hostname": os.uname().nodename,
        "processes": processes(),
    }

def dragoman(*arguments):
    command = [sys.executable, "-m", "dragoman", "lab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

before = look()
"""
COMPARE = """
after = look()
for what in before:
    assert before[what] == after[what], (what, before[what], after[what])
"""


def test_the_machine_is_afterwards_as_it_was():
    on_own_machine(
        LOOK
        + """
with Lab.up("one", 3, "100mbit") as lab:
    during = look()
    assert len(during["namespaces"]) == 4
    assert [link["ifname"] for link in during["links"]] == ["lo", "dlab-one"]
    assert len(during["processes"]) == len(before["processes"]) + 3
    # All that is new on the machine's own network is on the lab's own link.
    assert {route["dev"] for route in during["routes"] if route not in before["routes"]} == {
        "dlab-one"
    }
    lab.disk("node1", 1_000_000)
    lab.cut("node1"), lab.partition("node1", "node2"), lab.pause("node3")
    subprocess.Popen(lab.command("node2", ["setsid", "sleep", "1000"]))
"""
        + COMPARE
    )


def test_what_crashes_leave_behind_is_found_by_name_alone():
    on_own_machine(
        LOOK
        + """
run = [sys.executable, "-m", "dragoman", "lab", "run", "--nodes", "1", "--"]
script = ["sh", "-c", "echo {hosts}; exec sleep 1000"]
run = subprocess.Popen([*run, *script], stdout=subprocess.PIPE, text=True)
hosts = Path(run.stdout.readline().strip())

def sleepers():
    try:
        return [pid for pid, command in processes().items() if command.startswith("sleep")]
    except OSError:  # a process has ended meanwhile
        return []

while not sleepers():  # after its echo, the shell still has to become one
    time.sleep(0.01)
run.kill(), run.wait()
for pid in sleepers():
    os.kill(pid, 9)
torn, lost, made, namespace = (Lab.up(name, 1) for name in ("torn", "lost", "made", "space"))
torn.layout.state.write_text('{"network": "10.')
made.layout.state.unlink()
subprocess.run(["umount", lost.folder], check=True)
subprocess.run(["rm", "-r", lost.folder], check=True)
subprocess.run(["ip", "netns", "delete", namespace.layout.switch], check=True)
(LABS / "files" / "node1").mkdir(parents=True)
names = sorted([hosts.parent.name, "torn", "lost", "made", "space", "files"])
assert sorted(lab_names()) == names
said = dragoman("down", "--all")
assert said.splitlines() == [f"lab {name} is down" for name in names]
assert dragoman("down", "--all") == "there is no lab\\n"
assert dragoman("down") == "there is no lab lab\\n"
"""
        + COMPARE
    )


def test_a_lab_that_cannot_be_finished_is_taken_back():
    on_own_machine(
        LOOK
        + """
from dragoman.lab import lab as module
whole = module._boot
def broken(layout, node):
    whole(layout, node)
    if node.name == "node2":
        raise KeyboardInterrupt
module._boot = broken
try:
    Lab.up("broken", 3)
except KeyboardInterrupt:
    pass
"""
        + COMPARE
    )


def test_a_network_is_chosen_that_leads_nowhere_else():
    on_own_machine(
        """
import subprocess
from dragoman.lab import Lab
def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)
ip("link", "add", "one", "type", "veth", "peer", "name", "other")
ip("link", "set", "one", "up")
ip("address", "add", "10.77.0.9/23", "dev", "one")
with Lab.up("a", 1) as lab:
    assert str(lab.layout.network) == "10.77.2.0/24"
ip("route", "add", "10.0.0.0/8", "dev", "one")
with Lab.up("a", 1) as lab:
    assert str(lab.layout.network) == "198.18.0.0/24"
"""
    )


def test_labs_made_at_the_same_moment_do_not_collide():
    skip_without_lab()
    names = [new_name() for _ in range(3)]
    program = "import sys; from dragoman.lab import Lab; Lab.up(sys.argv[1], 1)"
    try:
        started = [subprocess.Popen([sys.executable, "-c", program, name]) for name in names]
        assert [process.wait() for process in started] == [0, 0, 0]
        labs = [Lab.open(name) for name in names]
        assert len({it.layout.network for it in labs}) == 3
        for it in labs:
            seen = ssh(it, "node1", "ip -brief address show eth0").stdout.split()
            assert seen[2] == f"{it.node('node1').address}/24"
        labs[0].down()
        assert ssh(labs[1], "node1", "hostname").stdout == "node1\n"
    finally:
        for name in names:
            remove_lab(name)


def test_a_lab_is_made_once_and_one_that_is_not_there_is_named():
    with lab(nodes=1) as it:
        with pytest.raises(UserError, match=f"lab {it.name} is already up"):
            Lab.up(it.name, 1)
        assert Lab.open(it.name) == it
        it.layout.state.write_text("{")
        with pytest.raises(RunError, match=f"dragoman lab down --name {it.name}"):
            Lab.open(it.name)
    assert it.name not in lab_names()
    assert not (LABS / it.name).exists()
    with pytest.raises(UserError, match=f"lab {it.name} is not up"):
        Lab.open(it.name)


def test_the_commands_do_what_the_functions_do(capsys, monkeypatch):
    skip_without_lab()
    name = new_name()

    def lab(*words):
        """What is printed, and the exit code; in this process, which takes less time."""
        monkeypatch.setattr(sys, "argv", ["dragoman", "lab", words[0], "--name", name, *words[1:]])
        with pytest.raises(SystemExit) as ended:
            main()
        return capsys.readouterr(), ended.value.code

    try:
        said, code = lab("up", "--nodes", "2", "--rate", "1gbit", "--node-rate", "2=5mbit")
        assert code == 0
        assert str(Lab.open(name).hosts) in said.out
        for words in (["cut", "1"], ["partition", "node1", "node2"], ["disk", "node1", "5MB"]):
            assert lab(*words)[1] == 0
        said, _ = lab("status", "--seconds", "0.1")
        assert "1gbit" in said.out
        assert "5mbit" in said.out
        assert "cut  partitioned from node2  disk: 5.0 of 5.0 MB free" in said.out
        said, _ = lab("status", "--seconds", "0.1", "--json")
        assert [node["is_cut"] for node in json.loads(said.out)] == [True, False]
        for words in (["heal", "1"], ["pause", "2"], ["resume", "2"], ["kill", "2"], ["boot", "2"]):
            assert lab(*words)[1] == 0
        assert lab("rate", "1", "none")[1] == 0
        assert (
            lab("exec", "node2", "--", "sh", "-c", 'test "$(hostname)" = node2 && exit 3')[1] == 3
        )
        said, code = lab("cut", "node3")
        assert code == 2
        assert "has no 'node3'; its nodes are node1 to node2" in said.err
        assert lab("down")[0].out == f"lab {name} is down\n"
    finally:
        remove_lab(name)
