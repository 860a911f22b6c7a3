"""What is wrong with hosts is found before training starts: one sentence each, naming the host."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import dragoman

import dragoman as package

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def refused(digits, tmp_path):
    """Starts training on a host list and gives the sentence with which it is refused."""

    def run(hosts, *more) -> str:
        done = dragoman("train", digits, "--run", tmp_path / "run", "--hosts", hosts, *more)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("error: ")
        assert not (tmp_path / "run" / "events").exists()
        return done.stderr.removeprefix("error: ").strip()

    return run


def ssh_config(nodes, tmp_path, *changes: tuple[str, str]) -> Path:
    text = Path(nodes.ssh_config).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "ssh_config"
    path.write_text(text)
    return path


def wrapper(tmp_path: Path, extra: Path) -> str:
    """A Python that finds modules in another folder first."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={extra} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_host_that_is_not_there(host_list, refused, nodes):
    address = str(nodes.node("node2").address).rsplit(".", 1)[0] + ".200"
    sentence = refused(host_list(2, node2={"name": address, "address": address}))
    assert sentence.startswith(f"{address}: it cannot be reached") or "does not answer" in sentence


def test_a_port_where_no_ssh_listens(host_list, refused):
    sentence = refused(host_list(2, node2={"ssh_port": 2}))
    assert sentence.startswith("node2: nothing listens on its ssh port")


def test_a_key_that_is_not_let_in(host_list, refused, nodes, tmp_path):
    key = tmp_path / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    line = next(
        line for line in Path(nodes.ssh_config).read_text().splitlines() if "IdentityFile" in line
    )
    config = ssh_config(nodes, tmp_path, (line, f"    IdentityFile {key}"))
    assert "node1: ssh was denied access" in refused(host_list(1, ssh_config=config))


def test_a_host_key_that_is_not_known(host_list, refused, nodes, tmp_path):
    lines = Path(nodes.ssh_config).read_text().splitlines()
    known = next(line for line in lines if "UserKnownHostsFile" in line)
    config = ssh_config(nodes, tmp_path, (known, "    UserKnownHostsFile /dev/null"))
    sentence = refused(host_list(1, ssh_config=config))
    assert sentence.startswith("node1: its host key is not known here; connect once by hand")


def test_a_host_without_python(host_list, refused):
    sentence = refused(host_list(2, node2={"python": "/nowhere/bin/python; touch /tmp/x"}))
    assert sentence.startswith("node2: has no Python at /nowhere/bin/python; touch /tmp/x;")
    assert "dragoman setup" in sentence


def test_a_host_without_dragoman(host_list, refused, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    sentence = refused(host_list(2, node2={"python": f"{bare}/bin/python"}))
    assert sentence.startswith("node2: its Python at")
    assert "has no Dragoman" in sentence


def test_a_host_with_other_code(host_list, refused, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(Path(package.__file__).parent, other / "dragoman")
    with (other / "dragoman" / "errors.py").open("a") as file:
        file.write("# changed\n")
    sentence = refused(host_list(2, node2={"python": wrapper(tmp_path, other)}))
    assert sentence.startswith("node2: has different code of Dragoman")


def test_a_host_with_another_torch(host_list, refused, tmp_path):
    other = tmp_path / "other"
    (other / "torch-2.12.1.dist-info").mkdir(parents=True)
    (other / "torch-2.12.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.12.1\n"
    )
    sentence = refused(host_list(2, node2={"python": wrapper(tmp_path, other)}))
    assert sentence.startswith("node2: has torch 2.12.1, and node1 has 2.13.0")


def test_a_host_with_other_data(digits, host_list, refused, tmp_path):
    assert dragoman("prepare", digits).returncode == 0
    other = ["--set", f"data.prepared={tmp_path}/node2/prepared/digits"]
    assert dragoman("prepare", digits, *other, "--set", "tokenizer.vocabulary=50").returncode == 0
    sentence = refused(host_list(2))
    assert sentence.startswith("node2: its prepared data has hash")


def test_a_host_with_damaged_data(digits, host_list, refused, tmp_path):
    there = tmp_path / "node2" / "prepared" / "digits"
    assert dragoman("prepare", digits, "--set", f"data.prepared={there}").returncode == 0
    next(there.rglob("train-*.tokens.npy")).write_bytes(b"torn")
    assert refused(host_list(2)).startswith(f"node2: {there}")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("AllowTcpForwarding no", "node2: its sshd does not forward ports; set AllowTcpForwarding"),
        ("GatewayPorts yes", "node2: its sshd opens forwarded ports to the network"),
    ],
)
def test_a_host_whose_sshd_keeps_the_store_away_or_opens_it_to_all(
    host_list, refused, nodes, setting, sentence
):
    config = nodes.node("node2").sshd_config
    before = config.read_text()
    config.write_text(f"{setting}\n{before}")
    try:
        nodes.kill("node2")
        nodes.boot("node2")
        assert refused(host_list(2)).startswith(sentence)
    finally:
        config.write_text(before)
        nodes.kill("node2")
        nodes.boot("node2")


def test_public_addresses(host_list, refused):
    sentence = refused(host_list(2, node2={"address": "8.8.8.8"}))
    assert sentence.startswith("node2: address = '8.8.8.8' is a public address")
    sentence = refused(host_list(2, node2={"name": "8.8.8.8", "address": None}))
    assert sentence.startswith("8.8.8.8: its name resolves to 8.8.8.8, a public address")


def test_an_address_of_another_host(host_list, refused, nodes):
    third = str(nodes.node("node3").address)
    sentence = refused(host_list(2, node2={"address": third}))
    assert sentence.startswith(f"node2: none of its interfaces has {third}")


def test_more_devices_than_there_are(host_list, refused):
    sentence = refused(host_list(2), "--set", "training.device=cuda")
    assert sentence.startswith("node1: 1 CUDA device(s) are asked for, and it has 0")


def test_all_that_is_wrong_is_said_at_once(host_list, refused):
    sentence = refused(host_list(3, node2={"ssh_port": 2}, node3={"python": "/nowhere/python"}))
    first, second = sentence.splitlines()
    assert first.startswith("node2: nothing listens")
    assert second.strip().startswith("node3: has no Python")
