import pytest
from object_server import PREFIXES, credentials, make_bucket, s3_server

from dragoman.storage import Patience, Store, parse_address


@pytest.fixture(scope="package")
def server_port():
    with s3_server() as port:
        make_bucket(port, "bucket")
        yield port


@pytest.fixture
def bare(monkeypatch):
    """An environment without anything about stores."""
    import os

    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def reach(bare):
    """Sets the variables with which the server at a port is reached."""

    def reach(port):
        for name, value in credentials(port).items():
            bare.setenv(name, value)

    return reach


@pytest.fixture
def hasty():
    return Patience(retries=1, retry_s=2.0, connect_s=2.0, request_s=5.0)


@pytest.fixture
def store(server_port, reach, request, hasty):
    reach(server_port)
    return Store(parse_address(f"s3://bucket/{request.node.name}"), hasty)
