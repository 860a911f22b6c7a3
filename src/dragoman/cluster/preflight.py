"""Checks before the first step that hosts are up and alike, and chooses how they connect.

Each problem becomes one sentence that names the host.
"""

import logging
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from dragoman import __version__
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.launch import check_devices
from dragoman.cluster.network import Interface, check_public, check_twice, choose_interfaces
from dragoman.cluster.ssh import ask
from dragoman.errors import DragomanError, UserError
from dragoman.version import code_hash

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

SETUP = "dragoman setup --hosts ..."


@dataclass(frozen=True)
class Facts:
    """What a host reports about itself; see `probe`."""

    hostname: str
    folder: str
    version: str
    code: str
    python: str
    torch: str
    cuda_devices: int
    cores: int
    interfaces: list[Interface]
    free_bytes: int
    data: str | None
    """Hash of its prepared data; None if it has none."""
    data_error: str = ""

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> "Facts":
        interfaces = [Interface(*interface) for interface in answer.pop("interfaces")]
        return cls(interfaces=interfaces, **answer)


@dataclass(frozen=True)
class Ready:
    """A cluster on which training can start."""

    cluster: Cluster
    facts: Mapping[str, Facts]
    interfaces: Mapping[str, Interface]
    workers: Mapping[str, int]

    @property
    def ranks(self) -> int:
        return sum(self.workers.values())


def preflight(
    cluster: Cluster,
    prepared: str,
    device: str,
    workers: int | None,
    known: Mapping[str, Facts] | None = None,
    oversubscribe: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Ready:
    """Returns the hosts that can train, checked; raises for whatever would stop the run later.

    `prepared` is the folder of the data on each host; `workers` is the number requested for each,
    more than it has devices for only with `oversubscribe`.

    With min_hosts, hosts that cannot be reached are left out with a warning. Hosts whose facts are
    `known` from an earlier start are not probed again.
    """
    known = known or {}
    meanings = meanings_of(cluster)
    check_public(cluster, meanings)
    check_twice(cluster, meanings)
    answers = side_by_side(
        cluster, lambda host: known.get(host.name) or facts_of(cluster, host, prepared, is_stopping)
    )
    facts = {name: answer for name, answer in answers.items() if isinstance(answer, Facts)}
    errors = [answer for answer in answers.values() if isinstance(answer, DragomanError)]
    if errors and (cluster.min_hosts is None or len(facts) < cluster.min_hosts):
        raise UserError("\n       ".join(map(str, errors)))
    for error in errors:
        logger.warning(str(error))
    present = cluster.model_copy(
        update={"hosts": tuple(host for host in cluster.hosts if host.name in facts)}
    )
    check_alike(facts)
    interfaces = {name: of_host.interfaces for name, of_host in facts.items()}
    chosen = {host.name: workers_of(host, facts, device, workers) for host in present.hosts}
    for name, count in chosen.items() if not oversubscribe else ():
        cuda = facts[name].cuda_devices if device != "cpu" else 0
        check_devices(count, cuda, facts[name].cores, name)
    return Ready(present, facts, choose_interfaces(present, meanings, interfaces), chosen)


def side_by_side(
    cluster: Cluster, do: Callable[[Host], Answer]
) -> dict[str, Answer | DragomanError]:
    """Calls `do` for all hosts in parallel; returns each result or error by host name."""

    def attempt(host: Host) -> Answer | DragomanError:
        try:
            return do(host)
        except DragomanError as error:
            return error

    with ThreadPoolExecutor(max_workers=len(cluster.hosts)) as pool:
        results = pool.map(attempt, cluster.hosts)
    return {host.name: result for host, result in zip(cluster.hosts, results, strict=True)}


def on_all(cluster: Cluster, do: Callable[[Host], None]) -> None:
    """Calls `do` for all hosts in parallel; raises one error with the messages of all failures."""
    results = side_by_side(cluster, do).values()
    if errors := [result for result in results if isinstance(result, DragomanError)]:
        raise UserError("\n       ".join(map(str, errors)))


def meanings_of(cluster: Cluster) -> dict[str, list[str]]:
    """Returns the addresses of each name, as resolved by ssh's configuration and this machine.

    The list is empty if only a jump host can resolve the name.
    """
    return {host.name: _addresses(_ssh_hostname(cluster, host)) for host in cluster.hosts}


def check_alike(facts: Mapping[str, Facts]) -> None:
    """Refuses hosts with other code than this machine, or with different versions of torch."""
    leader = next(iter(facts))
    for name, of_host in facts.items():
        if of_host.code != code_hash():
            what = (
                f"has Dragoman {of_host.version}, and here it is {__version__}"
                if of_host.version != __version__
                else f"has different code of Dragoman {__version__} than this machine"
            )
            raise UserError(f"{name}: {what}; bring this one there with: {SETUP}")
        # The part after the plus names the CUDA version it was built for, which may differ.
        ours, theirs = (facts[leader].torch.split("+")[0], of_host.torch.split("+")[0])
        if ours != theirs:
            raise UserError(
                f"{name}: has torch {theirs}, and {leader} has {ours}; make them equal with: "
                f"{SETUP}"
            )


def workers_of(host: Host, facts: Mapping[str, Facts], device: str, wish: int | None) -> int:
    cuda = facts[host.name].cuda_devices
    somewhere = next((name for name, of_host in facts.items() if of_host.cuda_devices), None)
    uses_cuda = device == "cuda" or (device == "auto" and somewhere is not None)
    wanted = host.devices or wish or (cuda if uses_cuda and cuda else 1)
    if uses_cuda and wanted > cuda:
        beside = "" if somewhere in (None, host.name) else f" while {somewhere} has some"
        raise UserError(
            f"{host.name}: {wanted} CUDA device(s) are asked for, and it has {cuda}{beside}; lower "
            "devices in the host list, or set training.device to cpu"
        )
    return wanted


def check_data(facts: Mapping[str, Facts], here: str | None) -> tuple[str | None, Sequence[str]]:
    """Returns the hash of the data to train on and the hosts that lack it.

    The hash is None if nobody has data. `here` is the hash of the data on this machine.
    """
    for name, of_host in facts.items():
        if of_host.data_error:
            raise UserError(f"{name}: {of_host.data_error}")
    reference = here or next((f.data for f in facts.values() if f.data), None)
    for name, of_host in facts.items():
        if of_host.data not in (None, reference):
            raise UserError(
                f"{name}: its prepared data has hash {of_host.data[:12]}, and "
                f"{'here' if here else next(iter(facts))} it is {(reference or '')[:12]}; remove "
                f"it from {of_host.folder} there, and the right one is copied"
            )
    return reference, [name for name, of_host in facts.items() if of_host.data is None]


def facts_of(
    cluster: Cluster, host: Host, prepared: str, is_stopping: Callable[[], bool] = lambda: False
) -> Facts:
    question = {"folder": host.folder, "prepared": prepared}
    return Facts.from_answer(ask(cluster, host, "dragoman.cluster.probe", question, is_stopping))


def _ssh_hostname(cluster: Cluster, host: Host) -> str:
    """Returns what ssh's configuration resolves the name to, without connecting."""
    config = ["-F", cluster.ssh_config] if cluster.ssh_config else []
    try:
        resolved = subprocess.run(
            ["ssh", "-G", *config, host.name], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError(
            "there is no ssh on this machine; install the OpenSSH client to use --hosts"
        ) from None
    for line in resolved.stdout.splitlines():
        key, _, value = line.partition(" ")
        if key == "hostname":
            return value
    return host.name


def _addresses(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for *_, address in found]
