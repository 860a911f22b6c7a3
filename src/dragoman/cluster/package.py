"""Builds a wheel of this very version of the project, from the code that is running.

Needs neither a checkout nor a build tool, and includes uncommitted changes.
"""

import base64
import hashlib
import re
import zipfile
from importlib import metadata
from pathlib import Path

from dragoman import __version__
from dragoman.recipes import IN_PACKAGE, recipes_folder

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
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


def pins() -> list[str]:
    """Returns the project's dependencies, pinned to the versions installed here."""
    names = [
        found[0]
        for requirement in metadata.requires("dragoman") or []
        if "extra ==" not in requirement and (found := _NAME.match(requirement))
    ]
    # The part after a plus names a build, such as one for the CPU; hosts take theirs.
    return [f"{name}=={metadata.version(name).split('+')[0]}" for name in names]


def _contents() -> dict[str, bytes]:
    package = Path(__file__).parents[1]
    contents = {
        f"dragoman/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    recipes = recipes_folder()
    for path in sorted(recipes.rglob("*")):
        if path.is_file():
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
