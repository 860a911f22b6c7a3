"""Finds the network interface to the other ranks, so that nothing listens on any other."""

import os
import socket
from ipaddress import ip_address

import psutil

from dragoman.errors import UserError

ALLOW_PUBLIC = "DRAGOMAN_ALLOW_PUBLIC"


def bind_to_interface_towards(address: str, port: int) -> None:
    """Binds gloo and NCCL, unless the user or a launcher has; refuses a public address."""
    here = _own_address_towards(address, port)
    if here is None:
        return  # joining the group will fail and report it
    if ip_address(here).is_global and os.environ.get(ALLOW_PUBLIC) != "1":
        raise UserError(
            f"the route to rank 0 at {address} uses the public address {here} of "
            f"{socket.gethostname()}, and traffic between ranks is neither encrypted nor signed; "
            f"use a private address of rank 0's host, or set {ALLOW_PUBLIC}=1"
        )
    for name, addresses in psutil.net_if_addrs().items():
        if any(candidate.address == here for candidate in addresses):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={name}")


def interface_between_ranks() -> str | None:
    """Returns the interface chosen by us or by the user; None if nobody has chosen."""
    chosen = os.environ.get("GLOO_SOCKET_IFNAME") or os.environ.get("NCCL_SOCKET_IFNAME", "")
    return chosen.lstrip("=^").split(",")[0] or None


def _own_address_towards(address: str, port: int) -> str | None:
    """Returns the address the kernel would send from; a datagram socket connects silently."""
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return None
