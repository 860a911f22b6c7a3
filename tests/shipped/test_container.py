"""The container's files: read here, and by hadolint where that is found. No image is built."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
import yaml

from dragoman.cli import app

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in DOCKERFILE.replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_everything_that_is_copied_is_in_the_repository_and_let_through():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        name
        for instruction, words in INSTRUCTIONS
        if instruction == "COPY"
        for name in words.split()[:-1]
    }
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)


def test_what_the_wheel_is_built_from_is_in_the_image():
    """The image builds the wheel itself: it needs what pyproject.toml names."""
    copied = DOCKERFILE[DOCKERFILE.index("COPY pyproject.toml") :]
    for name in ("pyproject.toml", "README.md", "LICENSE", "recipes", "src"):
        assert re.search(rf"^COPY .*\b{re.escape(name)}\b", copied, re.M), name


def test_the_base_is_an_argument_with_the_same_default_everywhere():
    defaults = dict(words.split("=", 1) for name, words in INSTRUCTIONS if name == "ARG")
    assert INSTRUCTIONS[0][0] == "ARG"
    assert ["FROM", "${BASE}"] in INSTRUCTIONS
    given = COMPOSE["x-dragoman"]["build"]["args"]
    assert given == {name: f"${{{name}:-{value}}}" for name, value in defaults.items()}


def test_the_program_does_not_run_as_root():
    assert [words for name, words in INSTRUCTIONS if name == "USER"] == ["10001"]
    assert "useradd --create-home --uid 10001" in DOCKERFILE
    entrypoint = dict(INSTRUCTIONS)["ENTRYPOINT"]
    assert json.loads(entrypoint) == ["dragoman"]


def test_compose_starts_two_ranks_that_know_each_other():
    services = COMPOSE["services"]
    workers = {name: service for name, service in services.items() if name.startswith("worker-")}
    assert {service["environment"]["RANK"] for service in workers.values()} == {"0", "1"}
    for service in workers.values():
        variables = service["environment"]
        assert variables["WORLD_SIZE"] == str(len(workers))
        assert services[variables["MASTER_ADDR"]]["environment"]["RANK"] == "0"
        assert service["volumes"] == services["prepare"]["volumes"]
    for service in services.values():
        command, *arguments = service["command"]
        typer.main.get_command(app).commands[command].make_context(command, arguments)


def test_hadolint_has_nothing_to_say():
    # The environment of this Python need not be active.
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if not program:
        pytest.skip("hadolint is not installed; no build of it fits this machine")
    command = [program, "--no-color", ROOT / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
