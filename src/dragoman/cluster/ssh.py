"""Reaches hosts with the system's OpenSSH client, and explains failures in one sentence.

The user's configuration, agent, jump hosts and known hosts apply. All that a remote shell ever
reads is the quoted path of a Python and the name of a module; all else is JSON on its input.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

from dragoman.cluster.hosts import Cluster, Host
from dragoman.errors import DragomanError, RunError, UserError

CONNECT_TIMEOUT_S = 10
POLL_EVERY_S = 0.2
SSH_FAILED = 255
"""ssh's own exit code; any other is that of what it ran."""
# Our own programs print this first; login scripts may print anything before it.
MARK = "@dragoman "

# What ssh prints, and what to do about it. The first match counts.
_REASONS = (
    ("Could not resolve hostname", "its name cannot be resolved; check the host list"),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed; find out why, "
     "and if the new one is right remove the old key with: ssh-keygen -R {name}"),
    ("Host key verification failed", "its host key is not known here; connect once by hand with "
     "`ssh {name}`, compare the fingerprint, and accept it"),
    ("Permission denied", "ssh was denied access; check user and key, try `ssh {name}` by hand"),
    ("Too many authentication failures", "ssh was denied access; name the key in your ssh config"),
    ("Connection refused", "nothing listens on its ssh port; is it up, and is the port right?"),
    ("timed out", "it does not answer; is it up, and can this machine reach it?"),
    ("No route to host", "it cannot be reached from here; is it up?"),
    ("Network is unreachable", "it cannot be reached from here; check the address"),
    ("remote port forwarding failed", "its sshd does not forward ports; set AllowTcpForwarding to "
     "yes or remote in its sshd_config"),
    ("Bad configuration option", "your ssh configuration has an error; try `ssh {name}` by hand"),
)  # fmt: skip


def ssh_command(cluster: Cluster, host: Host, remote: str, more: Sequence[str] = ()) -> list[str]:
    options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
    options += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
    if cluster.ssh_config:
        options += ["-F", cluster.ssh_config]
    if host.ssh_port:
        options += ["-p", str(host.ssh_port)]
    if host.user:
        options += ["-l", host.user]
    return ["ssh", *options, *more, host.name, remote]


def forwarding_to(port: int) -> list[str]:
    """Returns options that forward a port on the host's loopback to `port` on ours.

    ssh prints which one on standard error; `forwarded_port` reads that. A connection that is
    shared with other commands would keep the port open after this one has ended.
    """
    return [
        *("-S", "none", "-o", "LogLevel=INFO", "-o", "ExitOnForwardFailure=yes"),
        *("-R", f"127.0.0.1:0:127.0.0.1:{port}"),
    ]


def forwarded_port(line: str) -> int | None:
    found = re.match(r"Allocated port (\d+) for remote forward", line)
    return int(found[1]) if found else None


def run_module(host: Host, module: str) -> str:
    """Returns the remote shell command that runs one of our modules under the host's Python."""
    return f"exec {quoted(host.interpreter)} -u -m {module}"


def quoted(path: str) -> str:
    """Returns the path quoted for a POSIX shell; a leading ~ still stands for the home there."""
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return f'"$HOME"/{shlex.quote(path.removeprefix("~/"))}'
    return shlex.quote(path)


def ask(
    cluster: Cluster,
    host: Host,
    module: str,
    question: dict[str, Any],
    is_unwanted: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Returns what `module` answers on the host, where it calls `answer`; errors name the host.

    There is no timeout, since it may have gigabytes to read; it ends once the answer `is_unwanted`.
    """
    process = subprocess.Popen(
        ssh_command(cluster, host, run_module(host, module)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches this process alone
    )
    words: str | None = json.dumps(question) + "\n"
    while True:
        try:
            output, errors = process.communicate(words, timeout=POLL_EVERY_S)
            break
        except subprocess.TimeoutExpired:
            words = None
            if is_unwanted():
                process.kill()
                process.communicate()
                raise RunError(f"{host.name}: stopped before it answered") from None
    for line in output.splitlines():
        if message := read_message(line):
            if "error" in message:
                raise UserError(f"{host.name}: {message['error']}")
            return message
    raise failure(host, process.returncode, errors)


def answer(reply: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Is the host's side of `ask`: reads one question from standard input, prints one answer."""
    try:
        message = reply(json.loads(sys.stdin.readline()))
    except DragomanError as error:
        message = {"error": str(error)}
    send_message(sys.stdout, message)


def failure(host: Host, code: int, errors: str) -> RunError | UserError:
    """Returns why a program did not answer, from ssh's exit code and its standard error."""
    if code == SSH_FAILED:
        for sign, advice in _REASONS:
            if sign in errors:
                return UserError(f"{host.name}: {advice.format(name=host.name)}")
        return UserError(f"{host.name}: ssh could not connect: {_last_line(errors)}")
    if code in (126, 127):
        return UserError(
            f"{host.name}: has no Python at {host.interpreter}; "
            "run `dragoman setup --hosts ...`, or name another with python = in the host list"
        )
    if "No module named" in errors:
        return UserError(
            f"{host.name}: its Python at {host.interpreter} has no Dragoman, or another version; "
            "bring this one there with: dragoman setup --hosts ..."
        )
    return RunError(f"{host.name}: ended with code {code}: {_last_line(errors)}")


def send_message(stream: IO[str], message: dict[str, Any]) -> None:
    stream.write(f"{MARK}{json.dumps(message)}\n")
    stream.flush()


def read_message(line: str) -> dict[str, Any] | None:
    """Returns the message; None if the line is not one of ours."""
    if not line.startswith(MARK):
        return None
    try:
        message = json.loads(line.removeprefix(MARK))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _last_line(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else "no error output"
