"""Chooses the network between the hosts: never a public one unless allowed. Pure.

The host list comes in, with the addresses of each name and the interfaces of each host; one
interface per host goes out.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from itertools import chain
from typing import NamedTuple

from dragoman.cluster.hosts import Cluster, Host
from dragoman.errors import UserError


class Interface(NamedTuple):
    name: str
    address: str
    prefix: int
    """Bits of the address that identify its network."""

    @property
    def network(self) -> str:
        return str(ip_interface(f"{_plain(self.address)}/{self.prefix}").network)


def check_public(cluster: Cluster, meanings: Mapping[str, Sequence[str]]) -> None:
    """Refuses public addresses; `meanings` are the addresses that each host's name resolves to."""
    if cluster.allow_public:
        return
    for host in cluster.hosts:
        if host.address:
            if is_public(host.address):
                raise _refusal(host, f"address = {host.address!r} is a public address")
        elif public := [a for a in meanings.get(host.name, ()) if is_public(a)]:
            raise _refusal(host, f"its name resolves to {public[0]}, a public address")


def check_twice(cluster: Cluster, meanings: Mapping[str, Sequence[str]]) -> None:
    """Refuses two names of one host."""
    seen: dict[str, str] = {}
    for host in cluster.hosts:
        for address in [host.address] if host.address else meanings.get(host.name, ()):
            if address in seen:
                raise UserError(
                    f"{host.name}: is listed twice, {seen[address]} stands for {address} too; "
                    "remove one of them"
                )
        seen |= dict.fromkeys(meanings.get(host.name, ()), host.name)
        if host.address:
            seen[host.address] = host.name


def choose_interfaces(
    cluster: Cluster,
    meanings: Mapping[str, Sequence[str]],
    interfaces: Mapping[str, Sequence[Interface]],
) -> dict[str, Interface]:
    """Returns, by host name, the interface whose address the others will use."""
    alone = len(cluster.hosts) == 1
    chosen = {}
    for host in cluster.hosts:
        of_host = interfaces[host.name]
        found = _named(cluster, host, of_host) or next(
            (i for i in of_host if i.address in meanings.get(host.name, ())), None
        )
        if found is None or (_is_loopback(found.address) and not alone):
            found = _on_common_network(cluster, host, interfaces)
        if is_public(found.address) and not cluster.allow_public:
            raise _refusal(host, f"{found.name} has the public address {found.address}")
        chosen[host.name] = found
    return chosen


def is_public(address: str) -> bool:
    return _plain(address).is_global


def _named(cluster: Cluster, host: Host, of_host: Sequence[Interface]) -> Interface | None:
    """Returns the interface that the host list names; None if it names none."""
    has = ", ".join(f"{i.name} {i.address}" for i in of_host) or "none"
    if cluster.interface:
        for interface in of_host:
            if interface.name == cluster.interface and host.address in (None, interface.address):
                return interface
        raise UserError(
            f"{host.name}: has no interface {cluster.interface} with an address of the host list; "
            f"it has {has}"
        )
    if host.address:
        for interface in of_host:
            if interface.address == host.address:
                return interface
        raise UserError(f"{host.name}: none of its interfaces has {host.address}; it has {has}")
    return None


def _on_common_network(
    cluster: Cluster, host: Host, interfaces: Mapping[str, Sequence[Interface]]
) -> Interface:
    """Returns the host's interface on the one private network that all hosts share."""
    candidates = []
    for interface in interfaces[host.name]:
        if _is_loopback(interface.address) or is_public(interface.address):
            continue
        neighbors = [
            [i.address for i in interfaces[other.name] if i.network == interface.network]
            for other in cluster.hosts
        ]
        # Bridges of container engines have the same address on every host and lead nowhere.
        are_distinct = len(set(chain(*neighbors))) >= len(cluster.hosts)
        if all(neighbors) and are_distinct:
            candidates.append(interface)
    if len(candidates) == 1:
        return candidates[0]
    what = (
        "is on no private network with all other hosts"
        if not candidates
        else f"shares several networks with the others ({', '.join(i.name for i in candidates)})"
    )
    raise UserError(f"{host.name}: {what}; choose one with address = in the host list")


def _refusal(host: Host, what: str) -> UserError:
    return UserError(
        f"{host.name}: {what}, and traffic between hosts is neither encrypted nor signed; give its "
        "private address with address = in the host list, or set allow_public = true"
    )


def _is_loopback(address: str) -> bool:
    return _plain(address).is_loopback


def _plain(address: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(address.partition("%")[0])  # without the zone of a link-local address
    except ValueError:
        raise UserError(f"{address!r} is not an IP address; correct the host list") from None
