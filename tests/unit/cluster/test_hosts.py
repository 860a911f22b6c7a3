import os
import re

import pytest

from dragoman.cluster.hosts import load_cluster
from dragoman.errors import ConfigError


def test_names_with_commas_are_hosts_with_defaults():
    cluster = load_cluster("a, b.example,10.0.0.3")
    assert [host.name for host in cluster.hosts] == ["a", "b.example", "10.0.0.3"]
    assert cluster.hosts[0].interpreter == "~/dragoman/.venv/bin/python"
    assert cluster.hosts[0].devices is None
    assert not cluster.allow_public


def test_a_host_list_holds_what_is_needed(tmp_path):
    (tmp_path / "config").write_text("Host *\n")
    path = tmp_path / "hosts.toml"
    path.write_text(
        """
        ssh_config = "config"
        interface = "eth1"
        [[hosts]]
        name = "node1"
        address = "10.0.0.1"
        ssh_port = 2222
        user = "ubuntu"
        folder = "/data/dragoman"
        python = "/opt/env/bin/python"
        devices = 2
        price_per_hour = 0.526
        [[hosts]]
        name = "node2"
        """
    )
    cluster = load_cluster(str(path))
    first, second = cluster.hosts
    assert cluster.ssh_config == str(tmp_path / "config")
    assert (first.ssh_port, first.user, first.devices) == (2222, "ubuntu", 2)
    assert first.interpreter == "/opt/env/bin/python"
    assert second.address is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("a,a", "a is listed twice"),
        ("a,,b", "separate the names with commas"),
        ("-oProxyCommand=touch,b", "'-oProxyCommand=touch' is not a host name"),
        ("a;reboot", "'a;reboot' is not a host name"),
        ("$(reboot)", "is not a host name"),
        ("a..b", "'a..b' is not a host name"),
        ("x" * 64, "is not a host name"),
        ("[::1]", "'[::1]' is not an IP address; write it without brackets and without a port"),
        ("node1:2222", "'node1:2222' is not an IP address; write it without brackets"),
        ("10.0.0.1:22", "without a port"),
        ("fe80::1%eth0", "has a zone"),
        ("/dev/zero", "/dev/zero: cannot be read (it is not a regular file)"),
        ("/tmp", "/tmp: cannot be read (it is not a regular file)"),
        ("a" * 5000 + ".toml", "cannot be read (File name too long)"),
        ("missing.toml", "no such host list"),
    ],
)
def test_bad_lists_are_one_sentence(given, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        load_cluster(given)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "hosts is missing"),
        ("hosts = []", "lists no host"),
        ("[[hosts]]\nname = 'a'\nadress = '10.0.0.1'", "did you mean hosts.address?"),
        ("[[hosts]]\nname = 'a'\naddress = 'ten'", "'ten' is not an IP address"),
        ("[[hosts]]\nname = 'a'\naddress = '[fe80::1]'", "'[fe80::1]' is not an IP address"),
        ("[[hosts]]\nname = 'a'\naddress = '10.0.0.1:22'", "'10.0.0.1:22' is not an IP address"),
        ("[[hosts]]\nname = 'a'\naddress = 'fe80::1%eth0'", "has a zone"),
        ("[[hosts]]\nname = 'a'\nprice_per_hour = inf", "should be from 0 to 1,000,000"),
        ("x = " + "[" * 5000, "nested too deeply"),
        ("min_hosts = 1" + "0" * 5000, "a number has too many digits"),
        ("min_hosts = 0x1" + "0" * 5000, "min_hosts = a huge int should be"),
        ("[[hosts]]\nname = 'a'\ndevices = 0", "devices = 0 should be from 1 to 1,024"),
        ("[[hosts]]\nname = 'a'\nuser = 'x y'", "'x y' is not a user name"),
        (
            '[[hosts]]\nname = "a"\nfolder = "x\\ny"',
            "hosts.0.folder = 'x\\ny' should be text without control characters",
        ),
        ("[[hosts]]\nname = 'a'\nssh_port = 70000", "ssh_port = 70000"),
        ("ssh_config = 'gone'\n[[hosts]]\nname = 'a'", "ssh_config = 'gone' is not a file"),
        ("[[hosts]\n", "not valid TOML"),
        (
            "[[hosts]]\nname='a'\naddress='10.0.0.1'\n[[hosts]]\nname='b'\naddress='10.0.0.1'",
            "b is listed twice",
        ),
    ],
)
def test_bad_host_files_are_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        load_cluster(str(path))
    assert str(caught.value).startswith(str(path))


def test_many_names_are_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node1").mkdir()
    names = [f"node{number}" for number in range(1000)]
    assert [host.name for host in load_cluster(",".join(names)).hosts] == names
    assert load_cluster("node1").hosts[0].name == "node1"


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "hosts.toml")
    with pytest.raises(ConfigError, match="it is not a regular file"):
        load_cluster(str(tmp_path / "hosts.toml"))


def test_a_huge_host_list_is_refused(tmp_path):
    path = tmp_path / "hosts.toml"
    path.write_text("# " + "x" * 1_000_000)
    with pytest.raises(ConfigError, match="more than 1,000,000 bytes"):
        load_cluster(str(path))
