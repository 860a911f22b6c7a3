"""The system calls by which a save changes a disk: counted, and failed or fatal at one of them."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

NAMES = ("open", "write", "fsync", "mkdir", "rename", "replace", "symlink", "unlink", "rmdir")


class Call(NamedTuple):
    """`path` is what the call changes, `other` where it is renamed to or what the link says."""

    name: str
    path: Path
    other: Path | None = None
    content: bytes = b""


Fault = Callable[[Call, Callable[[], Any]], Any]
"""Instead of a call: receives it and the way to make it all the same."""


@contextmanager
def disk_calls(
    at: int = 0, fault: Fault | None = None, stays: bool = False
) -> Iterator[list[Call]]:
    """All calls that change a disk, in their order; number `at` (from 1) goes to `fault`.

    All after it too, where the fault `stays`.
    """
    calls: list[Call] = []

    def around(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            def make() -> Any:
                return real(*arguments, **options)

            made = _call(name, arguments, options)
            if made is None:
                return make()
            calls.append(made)
            is_hit = len(calls) == at or (stays and len(calls) > at)
            return fault(made, make) if fault and is_hit else make()

        return call

    with ExitStack() as patches:
        for name in NAMES:
            patches.enter_context(patch.object(os, name, around(name, getattr(os, name))))
        yield calls


def die(call: Call, make: Callable[[], Any]) -> None:
    """Before the call."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_half_way(call: Call, make: Callable[[], Any]) -> None:
    """Inside a call that writes; before any other."""
    if call.name == "write":
        with call.path.open("ab") as file:
            file.write(call.content[: len(call.content) // 2])
    die(call, make)


def fails_with(number: int) -> Fault:
    def fail(call: Call, make: Callable[[], Any]) -> None:
        raise OSError(number, os.strerror(number), str(call.path))

    return fail


def _call(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Call | None:
    first = arguments[0]
    match name:
        case "open":
            creates = arguments[1] & os.O_CREAT
            return Call("open", Path(first)) if creates else None
        case "write" | "fsync":
            content = bytes(arguments[1]) if name == "write" else b""
            return Call(name, _opened(first), content=content)
        case "rename" | "replace":
            return Call("rename", Path(first), Path(arguments[1]))
        case "symlink":
            return Call(name, Path(arguments[1]), Path(first))
    folder = options.get("dir_fd")
    return Call(name, Path(first) if folder is None else _opened(folder) / first)


def _opened(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()
