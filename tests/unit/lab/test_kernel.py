import os
import sys
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from dragoman.errors import RunError, UserError
from dragoman.lab import Lab, kernel
from dragoman.lab.session import run_in_lab


def test_without_rights_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for attempt in (Lab.up, Lab.open, lambda: run_in_lab(["true"], 2, "none")):
        with pytest.raises(UserError, match="sudo"):
            attempt()


def test_without_linux_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="needs Linux"):
        kernel.check_machine()


def test_missing_tools_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    there = set(kernel.TOOLS) - {"tc", "ip", "sshd"}
    monkeypatch.setattr(kernel.shutil, "which", lambda tool, path: tool if tool in there else None)
    with pytest.raises(UserError) as error:
        kernel.check_machine()
    assert str(error.value) == (
        "dragoman lab needs ip, tc, sshd, which this machine does not have; install with: "
        "apt-get install iproute2 openssh-server"
    )


def test_a_command_that_fails_is_shown_with_what_it_said():
    with pytest.raises(RunError, match=r"^`sh -c echo no >&2; exit 3` failed: no$"):
        kernel.run(["sh", "-c", "echo no >&2; exit 3"])


def test_a_container_without_rights_is_told_what_it_needs():
    with pytest.raises(RunError, match=r"Operation not permitted; in a container, .* --privileged"):
        kernel.run(["sh", "-c", "echo Operation not permitted >&2; exit 1"])


def test_a_default_route_is_in_nobodys_way(monkeypatch):
    routes = ["default", "0.0.0.0/1", "128.0.0.0/1", "10.8.0.0/24", "10.9.0.7"]
    monkeypatch.setattr(kernel, "read_json", lambda command: [{"dst": dst} for dst in routes])
    assert kernel.networks_in_use() == [IPv4Network("10.8.0.0/24"), IPv4Network("10.9.0.7/32")]


def test_what_is_wrong_is_said_before_anything_is_made():
    for arguments, sentence in (
        ({"name": "Too long a name"}, "is not a name for a lab"),
        ({"nodes": 0}, "1 to 200 nodes, not 0"),
        ({"rate": "fast"}, "is not a rate"),
        ({"nodes": 2, "node_rates": {3: "1mbit"}}, "node 3 has a rate, but there are 2 nodes"),
    ):
        with pytest.raises(UserError, match=sentence):
            Lab.up(**arguments)


def test_mounts_are_found_from_the_innermost_out(monkeypatch):
    lines = ["/", "/labs/a", "/labs/a/node1/runs", "/labs/ab", "/labs/a/with\\040space"]
    text = "".join(f"1 2 3:4 / {place} rw - tmpfs tmpfs rw\n" for place in lines)
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: text)
    assert kernel.mounts_below(Path("/labs/a")) == [
        Path("/labs/a/with space"),
        Path("/labs/a/node1/runs"),
        Path("/labs/a"),
    ]
