"""Which code this is: the version's number, and a hash that tells two states of it apart."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def code_hash() -> str:
    """Of every module of the package; equal where the same code is installed."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).parts):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(path.read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()
