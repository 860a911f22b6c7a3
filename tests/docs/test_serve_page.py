"""The page about serving: what it shows is asked of a real server, with a small run."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main
from server_process import running_server

from dragoman.cli import app
from dragoman.serve.limits import Limits

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_requests_of_the_page_are_answered_as_it_shows(trained):
    """The words are those of another model, so keys are compared."""
    requests = re.findall(r"```sh\n(curl .*?)```(?:\n\n```json\n(.*?)```)?", PAGE, re.DOTALL)
    assert len(requests) == 2
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    _, run = trained
    with running_server(run) as server:
        for command, shown in requests:
            here = command.replace("http://127.0.0.1:5000", server.address)
            done = subprocess.run(
                ["bash", "-c", here], capture_output=True, text=True, check=True, timeout=60
            )
            found = json.loads(done.stdout)
            assert found.keys() >= {"translatedText"}
            assert not shown or found.keys() == json.loads(shown).keys()
        exec(program.replace("http://127.0.0.1:5000", server.address), {})


def test_the_limits_of_the_page_are_those_of_the_command():
    options = {
        name: parameter.default
        for parameter in typer.main.get_command(app).commands["serve"].params
        for name in parameter.opts
    }
    rows = re.findall(r"^\| `(--[a-z-]+)`, [^|]* \| ([\d,]+) \|", PAGE, re.M)
    assert len(rows) == 6
    for name, default in rows:
        assert options[name] == float(default.replace(",", ""))
        field = name.removeprefix("--").replace("-", "_")
        assert getattr(Limits(), field) == options[name]


def test_every_route_of_the_page_is_described():
    from dragoman.serve.openapi import description

    shown = set(re.findall(r"^\| `(?:GET|POST) (/\S+)` \|", PAGE, re.M))
    assert shown == description(Limits())["paths"].keys()
