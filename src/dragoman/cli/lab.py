import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.lab import Lab
    from dragoman.lab.status import NodeStatus

lab = typer.Typer(
    help="Run a cluster on this machine: hosts with real, slow, breakable links.\n\n"
    "Needs Linux and root. Example: dragoman lab up --nodes 3 --rate 100mbit",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Option("--name", help="Name of the lab, if there are several.")]
Nodes = Annotated[int, typer.Option("--nodes", min=1, help="Number of hosts.")]
Rate = Annotated[
    str,
    typer.Option(
        "--rate", help="Rate of each host's link, in both directions: 100mbit, 1gbit, ... or none."
    ),
]
NodeRates = Annotated[
    list[str] | None,
    typer.Option("--node-rate", metavar="N=RATE", help="Rate of host N alone; repeatable."),
]
Node = Annotated[str, typer.Argument(help="node1, node2, ... or just the number.", metavar="NODE")]
Command = Annotated[list[str], typer.Argument(help="The command, after --.", metavar="COMMAND")]


@lab.command()
def up(
    nodes: Nodes = 2, rate: Rate = "none", node_rate: NodeRates = None, name: Name = "lab"
) -> None:
    """Create the hosts node1, node2, ... and a host list for --hosts.

    Example: dragoman lab up --nodes 3 --rate 100mbit --node-rate 2=10mbit
    """
    from dragoman.console import echo
    from dragoman.lab import Lab

    made = Lab.up(name, nodes, rate, _node_rates(node_rate))
    echo(f"lab {name} is up: " + ", ".join(f"{node.name} {node.address}" for node in made.nodes))
    echo(f"host list: {made.hosts}")
    echo(f"log in:    ssh -F {made.ssh_config} node1")
    echo(f"take down: dragoman lab down{_named(name)}")


@lab.command()
def run(
    command: Command,
    nodes: Nodes = 2,
    rate: Rate = "none",
    node_rate: NodeRates = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the lab; by default one that is free.")
    ] = "",
) -> None:
    """Create a lab for one command, which finds the host list in $DRAGOMAN_LAB_HOSTS.

    {hosts} in the command is replaced by it; dragoman and python in it are those that run this.

    The exit code is the command's.

    Example: dragoman lab run --nodes 2 --rate 1gbit -- dragoman train RECIPE --hosts {hosts}
    """
    from dragoman.lab.session import run_in_lab

    sys.exit(run_in_lab(command, nodes, rate, _node_rates(node_rate), name))


@lab.command("exec")
def exec_(node: Node, command: Command, name: Name = "lab") -> None:
    """Run a command on a host, in its working folder.

    Example: dragoman lab exec node1 -- ip address
    """
    sys.exit(_opened(name).exec(node, command))


@lab.command()
def rate(
    node: Node,
    rate: Annotated[str, typer.Argument(help="100mbit, 1gbit, ... or none.")],
    direction: Annotated[str, typer.Option("--direction", help="send, receive or both.")] = "both",
    name: Name = "lab",
) -> None:
    """Limit what a host sends, receives or both, even during a run.

    Example: dragoman lab rate node2 10mbit --direction send
    """
    from dragoman.lab.rates import parse_direction

    _opened(name).rate(node, rate, parse_direction(direction))


@lab.command()
def cut(node: Node, name: Name = "lab") -> None:
    """Unplug a host: its connections are not reset, they fall silent.

    Example: dragoman lab cut node2
    """
    _opened(name).cut(node)


@lab.command()
def partition(node: Node, other: Node, name: Name = "lab") -> None:
    """Cut two hosts off from each other; both still reach all others.

    Example: dragoman lab partition node1 node2
    """
    _opened(name).partition(node, other)


@lab.command()
def heal(
    node: Node,
    other: Annotated[
        str | None, typer.Argument(help="Only the partition from this host.", metavar="[OTHER]")
    ] = None,
    name: Name = "lab",
) -> None:
    """Undo the cut and the partitions of a host.

    Example: dragoman lab heal node2
    """
    _opened(name).heal(node, other)


@lab.command()
def kill(node: Node, name: Name = "lab") -> None:
    """Kill all processes of a host with SIGKILL, its sshd included.

    Example: dragoman lab kill node2
    """
    _opened(name).kill(node)


@lab.command()
def boot(node: Node, name: Name = "lab") -> None:
    """Start a host that was killed.

    Example: dragoman lab boot node2
    """
    _opened(name).boot(node)


@lab.command()
def pause(node: Node, name: Name = "lab") -> None:
    """Stop all processes of a host with SIGSTOP.

    Example: dragoman lab pause node2
    """
    _opened(name).pause(node)


@lab.command()
def resume(node: Node, name: Name = "lab") -> None:
    """Resume the processes of a paused host.

    Example: dragoman lab resume node2
    """
    _opened(name).resume(node)


@lab.command()
def disk(
    node: Node,
    size: Annotated[str, typer.Argument(help="50MB, 1GB, ... or none to remove it.")],
    name: Name = "lab",
) -> None:
    """Put the runs of a host on a small disk, to test a full disk.

    Example: dragoman lab disk node1 50MB
    """
    from dragoman.console import echo
    from dragoman.lab.rates import parse_size

    place = _opened(name).disk(node, None if size == "none" else parse_size(size))
    echo(str(place))


@lab.command()
def status(
    name: Name = "lab",
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Seconds over which speeds are measured.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show the addresses, rates, traffic and processes of all hosts.

    Example: dragoman lab status
    """
    import json
    from dataclasses import asdict

    opened = _opened(name)
    nodes = opened.status(seconds)
    if as_json:
        print(json.dumps([asdict(node) for node in nodes], indent=2))
    else:
        _show(opened, nodes)


@lab.command()
def down(
    name: Name = "lab",
    all_: Annotated[
        bool, typer.Option("--all", help="Take down every lab, and what crashes have left behind.")
    ] = False,
) -> None:
    """Take down a lab and remove everything of it, including the files of its hosts.

    Example: dragoman lab down --all
    """
    from dragoman.console import echo
    from dragoman.lab import lab_names, remove_lab
    from dragoman.lab.kernel import check_machine
    from dragoman.lab.layout import check_name

    check_machine()
    found = lab_names()
    for one in sorted(found) if all_ else [check_name(name)]:
        remove_lab(one)
        echo(f"lab {one} is down" if one in found else f"there is no lab {one}")
    if all_ and not found:
        echo("there is no lab")


def _opened(name: str) -> "Lab":
    from dragoman.lab import Lab

    return Lab.open(name)


def _named(name: str) -> str:
    return "" if name == "lab" else f" --name {name}"


def _node_rates(given: list[str] | None) -> dict[int, str]:
    from dragoman.errors import UserError

    rates = {}
    for text in given or ():
        number, _, rate = text.removeprefix("node").partition("=")
        if not number.isdecimal() or not rate:
            raise UserError(
                f"--node-rate {text}: write the host's number and its rate, such as 2=10mbit"
            )
        rates[int(number)] = rate
    return rates


def _show(opened: "Lab", nodes: "list[NodeStatus]") -> None:
    from dragoman.console import echo
    from dragoman.lab.rates import rate_text

    echo(f"lab {opened.name}, {opened.layout.network}, host list {opened.hosts}")
    echo(f"{'':7} {'address':15} {'rate':>8} {'sent':>26} {'received':>26}  processes")
    for node in nodes:
        sent = f"{node.sent_bytes / 1e6:,.1f} MB {node.sent_mbit_per_s:>7,.1f} Mbit/s"
        received = f"{node.received_bytes / 1e6:,.1f} MB {node.received_mbit_per_s:>7,.1f} Mbit/s"
        rates = node.rate_bits, node.receive_rate_bits
        limits = [rate_text(bits) if bits else "none" for bits in rates]
        limit = "/".join(dict.fromkeys(limits))  # what it sends, what it receives
        count = f"{len(node.processes):>9}"
        facts = "".join(f"  {fact}" for fact in _facts(node))
        echo(
            f"{node.name:7} {node.address:15} {limit:>8} {sent:>26} {received:>26}  {count}{facts}"
        )


def _facts(node: "NodeStatus") -> list[str]:
    facts = [
        ("not running", not node.is_running),
        ("paused", node.is_paused),
        ("cut", node.is_cut),
        (f"partitioned from {', '.join(node.parted_from)}", bool(node.parted_from)),
    ]
    if node.disk:
        free, size = node.disk.free_bytes / 1e6, node.disk.size_bytes / 1e6
        facts.append((f"disk: {free:,.1f} of {size:,.1f} MB free", True))
    return [fact for fact, holds in facts if holds]
