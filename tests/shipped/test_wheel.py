"""Dragoman without its repository: an sdist is built, a wheel from it, and installed elsewhere."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import dragoman

ROOT = Path(__file__).parents[2]
BESIDE_THE_CODE = {
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
}
MOST_BYTES = 200_000
SHORT = {
    "training.steps": "4",
    "evaluation.every_steps": "4",
    "checkpoints.every_steps": "4",
    "tokenizer.vocabulary": "400",
    "data.train": '[{kind = "phrasebook", pairs = 800}]',
    "data.validation": '[{kind = "phrasebook", pairs = 20}]',
    "data.test": '[{kind = "phrasebook", pairs = 20}]',
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    _run(*command, "--directory", folder, cwd=ROOT)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """A virtual environment with the wheel, and the packages of this one as its dependencies."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True)
    _pip("--python", folder / "bin" / "python", "install", "--no-deps", wheel, cwd=folder)
    # Of folders that are listed here, Python reads no .pth files: an editable installation in one
    # of them, as `make` makes it, has no effect.
    others = [path for path in sys.path if Path(path).name == "site-packages"]
    (_packages(folder) / "dependencies.pth").write_text("\n".join(others))
    return folder


def test_the_sdist_has_the_code_and_the_recipes_and_nothing_large(sdist):
    with tarfile.open(sdist) as archive:
        files = [member for member in archive if member.isfile()]
    names = {Path(*Path(member.name).parts[1:]) for member in files}
    assert {name.parts[0] for name in names} == BESIDE_THE_CODE | {"src", "recipes"}
    assert {str(name) for name in names if name.parts[0] in ("src", "recipes")} == {
        str(Path(top, name)) for top in ("src", "recipes") for name in _files(ROOT / top)
    }
    assert [member.name for member in files if member.size > MOST_BYTES] == []


def test_the_wheel_has_every_file_of_the_package_and_all_recipes(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"dragoman-{dragoman.__version__}.dist-info"
    code = {f"dragoman/{name}" for name in _files(ROOT / "src" / "dragoman")}
    recipes = {f"dragoman/shipped_recipes/{name}" for name in _files(ROOT / "recipes")}
    assert {"dragoman/py.typed", "dragoman/report/page.css"} <= code
    assert {name for name in names if not name.startswith(info)} == code | recipes
    assert f"{info}/licenses/LICENSE" in names


def test_the_installed_code_is_that_of_the_wheel(environment, tmp_path):
    program = "import dragoman, dragoman.recipes as r; print(dragoman.__file__, r.recipes_folder())"
    done = _run(environment / "bin" / "python", "-c", program, cwd=tmp_path)
    package = _packages(environment) / "dragoman"
    assert done.split() == [str(package / "__init__.py"), str(package / "shipped_recipes")]
    version = _run(environment / "bin" / "dragoman", "--version", cwd=tmp_path)
    assert version == f"dragoman {dragoman.__version__}\n"


def test_hosts_get_the_same_files_as_pip(environment, wheel, tmp_path):
    """`dragoman setup` builds its own wheel for the hosts, from the code that is running."""
    program = (
        "import pathlib, dragoman.cluster.package as p; print(p.write_wheel(pathlib.Path('.')))"
    )
    own = tmp_path / _run(environment / "bin" / "python", "-c", program, cwd=tmp_path).strip()
    assert _code_of(own) == _code_of(wheel)


def test_the_demo_runs_in_an_empty_folder(environment, tmp_path):
    before = _files(_packages(environment))
    settings = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
    program = environment / "bin" / "dragoman"
    shown = _run(program, "config", "demo", "--no-timing", *settings, cwd=tmp_path)
    assert "with 400 pieces" in shown
    printed = _run(program, "demo", *settings, cwd=tmp_path)
    assert "BLEU" in printed
    assert (tmp_path / "runs" / "demo" / "report.html").stat().st_size > 1_000_000
    translated = _run(program, "translate", "runs/demo", "Two lamps.", cwd=tmp_path)
    assert len(translated.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"prepared", "runs"}
    assert _files(_packages(environment)) == before


def _pip(*arguments: object, cwd: Path) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    return _run(*command, *arguments, cwd=cwd, PIP_NO_INDEX="1")


def _run(*command: object, cwd: Path, **more: str) -> str:
    """Returns what a program prints that finds no code but that of its own environment."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=variables | {"OMP_NUM_THREADS": "1"} | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3*/site-packages")
    return folder


def _files(folder: Path) -> set[str]:
    """What lies below a folder, but for what Python compiles."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "__pycache__" not in path.parts}


def _code_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("dragoman/")]
        return {name: archive.read(name) for name in names}
