"""How more of Dragoman is installed: the command for an extra, as this one came here."""

import importlib.metadata
import json
import os
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "dragoman"
SETUP_COMMAND = "DRAGOMAN_SETUP_COMMAND"
"""The environment variable in which a launcher gives workers on other hosts the command that
installs there what a run needs: it is typed where the run was started."""


def install_command(extra: str) -> str:
    """Returns what adds the packages of an extra to the environment that runs this.

    A clone is installed again from its folder: the package index would bring other code, or has
    none of this name.
    """
    if setup := os.environ.get(SETUP_COMMAND):
        return setup
    folder = _folder()
    what = [f"{PACKAGE}[{extra}]"] if folder is None else ["--editable", f"{folder}[{extra}]"]
    return shlex.join([sys.executable, "-m", "pip", "install", *what])


def _folder() -> Path | None:
    """Returns the clone that runs; None: it was installed from a package index or a wheel."""
    try:
        origin = importlib.metadata.distribution(PACKAGE).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:  # found by its folder alone
        folder = Path(__file__).parents[2]
        return folder if (folder / "pyproject.toml").is_file() else None
    recorded = json.loads(origin) if origin else {}
    is_editable = recorded.get("dir_info", {}).get("editable", False)
    return Path(unquote(urlsplit(recorded["url"]).path)) if is_editable else None
