"""The host list: `hosts.toml` or `a,b,c` comes in, a strict and frozen `Cluster` goes out."""

import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, PrivateAttr, Strict, ValidationError, model_validator

from dragoman.config import (
    Price,
    Section,
    Text,
    between,
    parse_toml,
    problems_of,
    read_toml_text,
)
from dragoman.errors import ConfigError

MOST_HOSTS = 10_000
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}")


def _address(value: str) -> str:
    try:
        address = ip_address(value)
    except ValueError:
        raise ValueError(
            f"{value!r} is not an IP address; write it without brackets and without a port"
        ) from None
    if "%" in value:
        raise ValueError(f"{value!r} has a zone; write the address alone, and set interface")
    return str(address)


def _host_name(value: str) -> str:
    """Refuses options and anything that a shell would expand, since it is passed to ssh as is."""
    if ":" in value:
        return _address(value)
    labels = value.removesuffix(".").split(".")
    if len(value) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{value!r} is not a host name; write what `ssh` would connect to")
    return value


PortNumber = Annotated[int, between(1, 65_535)]


def _matching(pattern: str, what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{value!r} is not a {what}")
        return value

    return AfterValidator(check)


HostName = Annotated[str, AfterValidator(_host_name)]
UserName = Annotated[str, _matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", "user name")]
InterfaceName = Annotated[
    str, _matching(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}", "network interface name")
]
RemotePath = Annotated[Text, Field(min_length=1)]
Address = Annotated[str, AfterValidator(_address)]

FOLDER = "~/dragoman"
ENVIRONMENT = ".venv"


class Host(Section):
    name: HostName
    """What ssh connects to: a name from your ssh config, a host name or an address."""
    address: Address | None = None
    """On the cluster's private network; unset: resolved from the name, or detected."""
    ssh_port: PortNumber | None = None
    """Where it differs from the ssh config."""
    user: UserName | None = None
    """Where it differs from the ssh config."""
    folder: RemotePath = FOLDER
    """Working folder on the host: prepared data, runs, and the environment that setup makes."""
    python: RemotePath = ""
    """Python of the environment; empty: .venv/bin/python in the working folder."""
    devices: Annotated[int, between(1, 1024)] | None = None
    """Workers to start there; unset: one per CUDA device, or one on the CPU."""
    price_per_hour: Price = 0.0
    """Price of the host per hour, in any currency."""

    @property
    def interpreter(self) -> str:
        return self.python or f"{self.folder}/{ENVIRONMENT}/bin/python"


class Cluster(Section):
    hosts: Annotated[tuple[Host, ...], Strict(False), Field(max_length=MOST_HOSTS)]
    """The first one leads: it keeps the run's checkpoints, and the others connect to it."""
    min_hosts: Annotated[int, between(1, MOST_HOSTS)] | None = None
    """Continue with this many when others are lost, and include those that return; unset: all."""
    interface: InterfaceName | None = None
    """Network interface that carries the traffic between hosts; unset: that of the address."""
    allow_public: bool = False
    """Let the hosts' traffic, which is neither encrypted nor signed, use public addresses."""
    ssh_config: Text = ""
    """An ssh configuration file to use instead of your own, relative to this list."""
    _given: str = PrivateAttr(default="")

    @property
    def given(self) -> str:
        """What `--hosts` has named it by; empty if it was made otherwise."""
        return self._given

    @model_validator(mode="after")
    def hosts_are_distinct(self) -> Self:
        if not self.hosts:
            raise ValueError("lists no hosts; add a [[hosts]] table with a name")
        if self.min_hosts and self.min_hosts > len(self.hosts):
            raise ValueError(
                f"min_hosts = {self.min_hosts}, and {len(self.hosts)} are listed; lower it"
            )
        for key in ("name", "address"):
            seen: dict[str, str] = {}
            for host in self.hosts:
                value = getattr(host, key)
                if value and value in seen:
                    raise ValueError(
                        f"{host.name} is listed twice: {key} = {value!r} stands for {seen[value]} "
                        "already; remove one of them"
                    )
                seen[value] = host.name
        return self


def load_cluster(given: str) -> Cluster:
    """Loads what `--hosts` gives: the path of a host list, or comma-separated names."""
    cluster = _load(given)
    cluster._given = given
    return cluster


def _load(given: str) -> Cluster:
    # Not Path.is_file, which fails for what is longer than a path can be, as a list of names is.
    if given.endswith(".toml") or "/" in given or os.path.isfile(given):  # noqa: PTH113
        return _from_file(Path(given))
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise ConfigError(f"--hosts {given}: separate the names with commas, as in a,b,c")
    return _validated({"hosts": [{"name": name} for name in names]}, f"--hosts {given}")


def _from_file(path: Path) -> Cluster:
    try:
        text = read_toml_text(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such host list; name a TOML file with [[hosts]]") from None
    cluster = _validated(parse_toml(text, str(path)), str(path))
    if cluster.ssh_config:
        config = (path.parent / Path(cluster.ssh_config).expanduser()).resolve()
        if not config.is_file():
            raise ConfigError(f"{path}: ssh_config = {cluster.ssh_config!r} is not a file")
        cluster = cluster.model_copy(update={"ssh_config": str(config)})
    return cluster


def _validated(tree: object, origin: str) -> Cluster:
    try:
        return Cluster.model_validate(tree)
    except ValidationError as error:
        known = [*Cluster.model_fields, *(f"hosts.{name}" for name in Host.model_fields)]
        raise ConfigError(f"{origin}: {problems_of(error, known)}") from error
