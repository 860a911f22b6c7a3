import subprocess
import tempfile

import pytest

from dragoman.cluster import dask_hosts
from dragoman.cluster.dask_hosts import PEM, _Process, temporary_security
from dragoman.cluster.hosts import load_cluster
from dragoman.errors import DragomanError, RunError, UserError

HOST = load_cluster("a").hosts[0]


def address_of(script):
    """What is made of a program in place of ssh."""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            ["sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            return _Process(HOST, process, errors).address()
        finally:
            dask_hosts._end(process)


def test_the_address_is_read_whatever_a_login_prints_before():
    said = """echo welcome; echo '@dragoman {"address": "tls://10.0.0.1:5"}'; cat"""
    assert address_of(said) == "tls://10.0.0.1:5"


@pytest.mark.parametrize(
    ("script", "kind", "sentence"),
    [
        ("""echo '@dragoman {"error": "has no Dask"}'""", UserError, "a: has no Dask"),
        ("echo 'Connection refused' >&2; exit 255", UserError, "a: nothing listens on its ssh"),
        ("echo surprise >&2; exit 3", RunError, "a: ended with code 3: surprise"),
    ],
)
def test_a_host_that_does_not_start_is_named_with_the_reason(script, kind, sentence):
    with pytest.raises(DragomanError, match=sentence) as caught:
        address_of(script)
    assert type(caught.value) is kind


def test_a_host_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(dask_hosts, "START_S", 0.1)
    with pytest.raises(RunError, match="a: has not started Dask within"):
        address_of("exec cat")


def test_a_cluster_s_certificate_is_no_file():
    security = temporary_security()
    assert all(getattr(security, name).startswith("-----BEGIN") for name in PEM)
    assert security.require_encryption
