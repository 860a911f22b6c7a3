"""Copies files between this machine and a host over ssh: visible only once they are complete.

A stream is one line of JSON, the files' names and sizes, and then their bytes end to end. On the
host: `python -m dragoman.cluster.transfer`, which receives a folder or sends files.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.ssh import failure, read_message, run_module, send_message, ssh_command
from dragoman.errors import CorruptFileError, DragomanError, RunError, UserError, storage_errors
from dragoman.rundir import RunDir, has_id, sync_folder

CHUNK_BYTES = 1 << 20
MODULE = "dragoman.cluster.transfer"

Advance = Callable[[int], None]


def send_folder(
    cluster: Cluster, host: Host, folder: Path, names: Sequence[str], to: str, advance: Advance
) -> None:
    """Copies files of `folder` to the folder `to` on the host, where it must not exist yet."""
    with _channel(cluster, host) as channel:
        assert channel.stdin
        try:
            _write_line(channel.stdin, {"take": to, "in": host.folder})
            write_files(channel.stdin, folder, names, advance)
            channel.stdin.close()
        except BrokenPipeError:
            pass  # the host ended early and reports why
        _answer_of(channel, host)


def fetch_checkpoint(
    cluster: Cluster, host: Host, run: RunDir, link: str, run_id: str, token: str, advance: Advance
) -> str | None:
    """Fetches the checkpoint that `link` of the run on the host points to, under its own name.

    Returns that name; None if there is nothing to fetch, the directory there belongs to another
    run, or the file `token` shows that it is this very directory.
    """
    with _channel(cluster, host) as channel:
        assert channel.stdin
        assert channel.stdout
        order = {"give": link, "of": run_there(run), "id": run_id, "unless": token}
        _write_line(channel.stdin, {**order, "in": host.folder})
        name: str | None = _answer_of(channel, host)["name"]
        if name is None:
            return None
        if (run.checkpoints / _inside(name)).exists():
            channel.kill()
            return name
        try:
            read_files(channel.stdout, run.checkpoints / name, advance)
        except EOFError:
            raise failure(host, channel.wait(), _read(channel.stderr)) from None
        return name


def run_there(run: RunDir) -> str:
    """Returns the folder of the run on a host, relative to its working folder."""
    return f"runs/{run.root.name}"


def write_files(stream: IO[bytes], folder: Path, names: Sequence[str], advance: Advance) -> None:
    sizes = [(folder / name).stat().st_size for name in names]
    _write_line(stream, {"files": list(zip(names, sizes, strict=True))})
    for name in names:
        with (folder / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                stream.write(chunk)
                advance(len(chunk))
    stream.flush()


def read_files(stream: IO[bytes], folder: Path, advance: Advance) -> None:
    """Writes to a temporary folder, then renames it: `folder` appears once it is complete."""
    beside = folder.with_name(f".arriving-{folder.name}-{os.getpid()}")
    with storage_errors(folder, "receiving files"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        for leftover in folder.parent.glob(f".arriving-{folder.name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            for name, size in _read_line(stream)["files"]:
                path = beside / _inside(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    _copy(stream, file, size, advance)
                    file.flush()
                    os.fsync(file.fileno())
            beside.rename(folder)
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def files_below(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def serve(stream: IO[bytes], out: IO[bytes]) -> dict[str, Any]:
    """Is the host's side: receives a folder or sends files, and returns the answer."""
    order = _read_line(stream)
    root = Path(order["in"]).expanduser()
    if "take" in order:
        folder = root / order["take"]
        if folder.exists():
            raise UserError(f"{folder}: already exists, and nothing was changed; remove it first")
        read_files(stream, folder, lambda _: None)
        return {"taken": True}
    run = RunDir(root / order["of"])
    folder = (run.checkpoints / order["give"]).resolve()
    is_home = (run.root / order["unless"]).exists()
    if not folder.is_dir() or is_home or not has_id(run, order["id"]):
        return {"name": None}
    send_message(sys.stdout, {"name": folder.name})
    write_files(out, folder, files_below(folder), lambda _: None)
    return {"given": True}


def _channel(cluster: Cluster, host: Host) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ssh_command(cluster, host, run_module(host, MODULE)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _answer_of(channel: subprocess.Popen[bytes], host: Host) -> dict[str, Any]:
    assert channel.stdout
    for line in iter(channel.stdout.readline, b""):
        if message := read_message(line.decode(errors="replace")):
            if "error" in message:
                raise RunError(f"{host.name}: {message['error']}")
            return message
    raise failure(host, channel.wait(), _read(channel.stderr))


def _read(stream: IO[bytes] | None) -> str:
    return stream.read().decode(errors="replace") if stream else ""


def _copy(source: IO[bytes], target: IO[bytes], size: int, advance: Advance) -> None:
    left = size
    while left:
        chunk = source.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise EOFError
        target.write(chunk)
        advance(len(chunk))
        left -= len(chunk)


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CorruptFileError(f"{name!r}: is not the name of a file inside a folder")
    return path


def _write_line(stream: IO[bytes], content: dict[str, Any]) -> None:
    stream.write(json.dumps(content).encode() + b"\n")
    stream.flush()


def _read_line(stream: IO[bytes]) -> dict[str, Any]:
    line = stream.readline()
    if not line:
        raise EOFError
    content: dict[str, Any] = json.loads(line)
    return content


def main() -> None:
    try:
        message = serve(sys.stdin.buffer, sys.stdout.buffer)
    except EOFError:
        sys.exit(1)  # the other side is gone
    except DragomanError as error:
        message = {"error": str(error)}
    send_message(sys.stdout, message)


if __name__ == "__main__":
    main()
