"""Pythons of this machine on which Dragoman should run; as a program, one path a line."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Where pyenv and uv keep theirs, which need not be on the path.
KEPT = ((".pyenv", "versions"), (".local", "share", "uv", "python"))


def supported_versions() -> list[str]:
    """Returns those that the package announces, such as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.search(r":: (3\.\d+)$", line) for line in project["classifiers"])
    return [match[1] for match in found if match]


def other_interpreters() -> dict[str, Path]:
    """Returns one interpreter of each supported version but the one that runs."""
    running = "{}.{}".format(*sys.version_info)
    found = {
        version: _interpreter(version) for version in supported_versions() if version != running
    }
    return {version: path for version, path in found.items() if path}


def _interpreter(version: str) -> Path | None:
    name = f"python{version}"
    kept = [
        path
        for folder in KEPT
        for path in sorted(Path.home().joinpath(*folder).glob(f"*{version}*/bin/{name}"))
    ]
    on_path = shutil.which(name)
    for path in [*([Path(on_path)] if on_path else []), *kept]:
        # The names that pyenv puts on the path exist also for what is not active, and fail.
        asked = [path, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
        if (
            subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
            == version
        ):
            return path
    return None


if __name__ == "__main__":
    print("\n".join(map(str, other_interpreters().values())))
