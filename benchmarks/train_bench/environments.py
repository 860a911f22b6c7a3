"""A virtual environment for each tool, made once and kept.

torch is installed first and held by a constraint, because any other release would bring gigabytes
of CUDA along. A tool whose declared requirements exclude that torch is tried once more without
them, and the rest of its requirements after it; whether that works is seen when it runs.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

TORCH = "torch==2.13.0"
VENVS = Path.home() / ".cache" / "dragoman-bench"
ROOT = Path(__file__).parents[2]
MOST_REASON_CHARACTERS = 300


class NotInstalledError(Exception):
    """pip has refused."""


class Recipe(NamedTuple):
    """How a tool is installed."""

    package: str
    also: tuple[str, ...] = ()
    """What it imports and does not declare."""
    instead: tuple[str, ...] = ()
    """What it needs beside torch, for a second try without the requirements that it declares."""
    needs_torch: bool = True


class Environment(NamedTuple):
    python: Path | None
    """None: the tool does not install."""
    remark: str
    """What was needed, or why it does not install."""


RECIPES = {
    "loops": Recipe("transformers==5.23.0"),
    "eole": Recipe("eole==0.6.4", also=("aiohttp",)),
    "opennmt": Recipe(
        "OpenNMT-py==3.5.1",
        instead=(
            *("configargparse", "ctranslate2>=4,<5", "tensorboard", "flask", "waitress", "six"),
            *("pyonmttok>=1.37,<2", "pyyaml", "sacrebleu", "rapidfuzz", "pyahocorasick"),
            *("fasttext-wheel", "spacy"),
        ),
    ),
    "joeynmt": Recipe("joeynmt==2.3.0", also=("importlib_metadata",)),
    "marian": Recipe("pymarian==1.12.42", needs_torch=False),
    "moses": Recipe("sacremoses==0.2.0", needs_torch=False),
}


def environment(name: str, folder: Path) -> Environment:
    """Returns the environment of a tool, after installing it if that has not been tried yet."""
    place = (folder / name).absolute()
    record = place / "installed.json"
    if record.exists():
        found = json.loads(record.read_text())
    else:
        print(f"installing {RECIPES[name].package} in {place}", flush=True)
        found = _install(name, place)
        record.write_text(json.dumps(found))
    python = place / "bin" / "python" if found["works"] else None
    return Environment(python, found["remark"])


def _install(name: str, place: Path) -> dict[str, object]:
    recipe = RECIPES[name]
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    (place / "constraints.txt").write_text(f"{TORCH}\n")
    also = [*recipe.also, *(_requirements_of_dragoman() if name == "loops" else [])]
    remark = f"{', '.join(recipe.also)} added, undeclared" if recipe.also else ""
    try:
        if recipe.needs_torch:
            _pip(place, TORCH)
        try:
            _pip(place, recipe.package, *also)
        except NotInstalledError as refused:
            if not recipe.instead:
                raise
            remark = f"installed without its declared requirements, because of these: {refused}"
            _pip(place, "--no-deps", recipe.package)
            _pip(place, *recipe.instead)
    except NotInstalledError as refused:
        return {"works": False, "remark": str(refused)}
    return {"works": True, "remark": remark}


def _pip(place: Path, *what: str) -> None:
    command = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    command += ["--constraint", str(place / "constraints.txt"), *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalledError(reason_of(done.stdout + done.stderr))


def _requirements_of_dragoman() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements: list[str] = project["dependencies"]
    return requirements


def reason_of(output: str) -> str:
    """Returns which requirements pip found in conflict, or else its last words."""
    conflicts = [line.strip() for line in output.splitlines() if " depends on " in line]
    return "; ".join(conflicts) or " ".join(output.split())[-MOST_REASON_CHARACTERS:]
