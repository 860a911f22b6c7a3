import asyncio
import io
import json
import sys

import pytest

from dragoman.cluster.dask_host import main, serve
from dragoman.cluster.dask_hosts import PEM, temporary_security
from dragoman.cluster.ssh import read_message

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def question(**changes):
    security = temporary_security()
    secret = {name: getattr(security, name) for name in PEM}
    asked = {"scheduler": None, "address": "127.0.0.1", "workers": 0, "security": secret}
    return asked | changes


def test_it_prints_the_address_of_its_scheduler_and_ends_with_its_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question()) + "\n"))
    main()
    (message,) = filter(None, map(read_message, capsys.readouterr().out.splitlines()))
    assert message["address"].startswith("tls://127.0.0.1:")


def test_a_host_without_dask_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question_without_dask()) + "\n"))
    main()
    (message,) = filter(None, map(read_message, capsys.readouterr().out.splitlines()))
    assert "has no Dask; install it there" in message["error"]


def question_without_dask():
    return {"scheduler": None, "address": "127.0.0.1", "workers": 0, "security": {}}


def test_a_scheduler_that_is_there_already_is_joined(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    asyncio.run(serve(question(scheduler="tls://127.0.0.1:1")))
    (message,) = filter(None, map(read_message, capsys.readouterr().out.splitlines()))
    assert message == {"address": "tls://127.0.0.1:1"}
