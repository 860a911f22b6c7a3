"""Identifies this code: its version number, and a hash of its modules."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def code_hash() -> str:
    """Returns a hash of every module of the package, equal for the same code."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    modules = [
        path
        for path in package.rglob("*.py")
        # A wheel has recipes inside the package, some of them programs; a clone has not.
        if path.relative_to(package).parts[0] != "shipped_recipes"
    ]
    for path in sorted(modules, key=lambda path: path.relative_to(package).parts):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(path.read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()
