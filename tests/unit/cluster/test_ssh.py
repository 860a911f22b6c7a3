import subprocess

import pytest

from dragoman.cluster.hosts import load_cluster
from dragoman.cluster.ssh import MARK, failure, quoted, read_message, ssh_command
from dragoman.errors import RunError, UserError

CLUSTER = load_cluster("node1")
HOST = CLUSTER.hosts[0]


@pytest.mark.parametrize(
    "path", ["/opt/env/bin/python", "/a b/$(touch x)/;rm -rf", "it's", "~/sp ace", "~", "a~b"]
)
def test_a_shell_reads_a_quoted_path_as_one_word(path):
    said = subprocess.run(
        ["sh", "-c", f"printf %s {quoted(path)}"],
        env={"HOME": "/home/me"},
        capture_output=True,
        text=True,
        check=True,
    )
    home = path.replace("~", "/home/me", 1) if path.startswith("~") else path
    assert said.stdout == home


def test_ssh_never_asks_and_takes_the_users_configuration():
    command = ssh_command(CLUSTER, HOST, "exec true")
    assert command[0] == "ssh"
    assert command[-2:] == ["node1", "exec true"]
    assert "BatchMode=yes" in command
    assert not {"-F", "-i", "-l", "-p"} & set(command)
    assert not any("StrictHostKeyChecking" in word for word in command)


@pytest.mark.parametrize(
    ("code", "said", "sentence"),
    [
        (255, "ssh: Could not resolve hostname node1: Name", "its name cannot be resolved"),
        (255, "ssh: connect to host node1 port 22: Connection refused", "nothing listens"),
        (255, "ssh: connect to host node1 port 22: Connection timed out", "does not answer"),
        (255, "root@node1: Permission denied (publickey).", "ssh was denied access"),
        (255, "Host key verification failed.", "its host key is not known here"),
        (255, "something new", "ssh could not connect: something new"),
        (127, "sh: /x/python: not found", "has no Python at ~/dragoman/.venv/bin/python"),
        (1, "/usr/bin/python3: No module named dragoman", "dragoman setup --hosts"),
    ],
)
def test_each_failure_is_a_sentence_that_names_the_host(code, said, sentence):
    error = failure(HOST, code, said)
    assert isinstance(error, UserError)
    assert str(error).startswith("node1: ")
    assert sentence in str(error)
    assert "\n" not in str(error)


def test_an_unknown_end_shows_the_last_line():
    error = failure(HOST, 3, "noise\n  the reason  \n\n")
    assert isinstance(error, RunError)
    assert str(error) == "node1: ended with code 3: the reason"


def test_what_login_scripts_print_is_not_a_message():
    assert read_message("Welcome to Ubuntu") is None
    assert read_message(f"{MARK}torn") is None
    assert read_message(f'{MARK}{{"a": 1}}') == {"a": 1}
