"""Builds a wheel of this very version of the project, from the code that is running.

Needs neither a checkout nor a build tool, and includes uncommitted changes.
"""

import base64
import hashlib
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.config import Config
from dragoman.corpus.public import BUILT_IN
from dragoman.installation import PACKAGE
from dragoman.recipes import IN_PACKAGE, recipes_folder

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
_EXTRA = re.compile(r"\s*(and\s+)?extra\s*==\s*['\"](?P<name>[\w-]+)['\"]")
USUAL_EXTRAS = ("tensorboard",)
"""What recipes ask for unless they say otherwise."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: dragoman\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(folder: Path) -> Path:
    path = folder / f"dragoman-{__version__}-py3-none-any.whl"
    contents = _contents()
    record = f"dragoman-{__version__}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in contents.items()]
    contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            wheel.writestr(name, data)
    return path


def pins(extras: Collection[str] = ()) -> list[str]:
    """Returns the project's dependencies and those of these extras, as pip takes them.

    They are pinned to the versions installed here; an extra may be missing here.
    """
    found = {}
    for requirement in metadata.requires(PACKAGE) or []:
        extra = _EXTRA.search(requirement)
        if extra is None or extra["name"] in extras:
            what, _, condition = _EXTRA.sub("", requirement).partition(";")
            condition = condition.strip()
            pinned = _pinned(what.strip())
            found[pinned] = f"{pinned}; {condition}" if condition else pinned
    return list(found.values())


def extras_for(config: Config) -> list[str]:
    """Returns the extras that a recipe asks for, to train and to prepare its data."""
    telemetry, tables = config.telemetry, list(_tables(config.data.model_dump()))
    is_needed = {
        "language": config.cleaning.languages,
        "mlflow": bool(telemetry.mlflow),
        "mtdata": any(t.get("kind") == "mtdata" and t["name"] not in BUILT_IN for t in tables),
        "prometheus": bool(telemetry.prometheus_port),
        "tensorboard": telemetry.tensorboard,
        "wandb": telemetry.wandb != "off",
        "zstd": any(str(value).endswith(".zst") for table in tables for value in table.values()),
    }
    return [extra for extra, needed in is_needed.items() if needed]


def extras_here() -> list[str]:
    """Returns extras that no recipe asks for, and which commands on several hosts use: what this
    machine has of them is to be on all."""
    return ["dask"] if find_spec("distributed") else []


def packages_needed(requirements: Iterable[str]) -> int:
    """Returns how many packages pip looks at to install these, judged by what is installed here."""
    seen: set[str] = set()
    names = [found[0] for each in requirements if (found := _NAME.match(each))]
    while names:
        name = names.pop().lower().replace("_", "-").replace(".", "-")
        if name in seen:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system, or for an extra
            continue
        seen.add(name)
        needed = [requirement for requirement in needed if not _EXTRA.search(requirement)]
        names += [found[0] for requirement in needed if (found := _NAME.match(requirement))]
    return len(seen)


def _pinned(requirement: str) -> str:
    name = _NAME.match(requirement)
    assert name
    try:
        # The part after a plus names a build, such as one for the CPU; hosts take theirs.
        return f"{name[0]}=={metadata.version(name[0]).split('+')[0]}"
    except metadata.PackageNotFoundError:
        return requirement


def _tables(tree: Any) -> Iterator[dict[str, Any]]:
    """Yields a section and all tables in it, sources among them."""
    if isinstance(tree, dict):
        yield tree
    inside = tree.values() if isinstance(tree, dict) else tree
    for value in inside:
        if isinstance(value, dict | list | tuple):
            yield from _tables(value)


def _contents() -> dict[str, bytes]:
    package = Path(__file__).parents[1]
    contents = {
        f"dragoman/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    recipes = recipes_folder()
    for path in sorted(recipes.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = f"{IN_PACKAGE}/{path.relative_to(recipes).as_posix()}"
            contents[f"dragoman/{name}"] = path.read_bytes()
    installed = metadata.distribution("dragoman")
    info = f"dragoman-{__version__}.dist-info"
    for name in ("METADATA", "entry_points.txt"):
        contents[f"{info}/{name}"] = (installed.read_text(name) or "").encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    return contents


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
