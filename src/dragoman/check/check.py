"""`dragoman check`: hosts and, if there is one, a recipe come in; a `CheckResult` goes out.

Prints nothing and installs no signal handlers. Leaves no process, socket or file on any host,
however it ends.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from dragoman import __version__
from dragoman.check import examine, links, ports, verdicts
from dragoman.check.bandwidth import SEVERAL_FLOWS
from dragoman.check.result import CheckResult, Collective, Computing, Finding
from dragoman.check.session import Session, sessions_on
from dragoman.check.tournament import around_the_ring, round_robin
from dragoman.check.transfers import Played, play, shared_findings
from dragoman.check.verdicts import Examined
from dragoman.check.workload import Workload, workload_hash, workload_of
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.network import Interface, check_public, check_twice, choose_interfaces
from dragoman.cluster.preflight import Facts, Ready, meanings_of
from dragoman.cluster.probe import data_hash
from dragoman.config import Config
from dragoman.errors import DragomanError, UserError
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.version import code_hash

logger = logging.getLogger(__name__)

Rehearse = Callable[
    [Cluster | None, Ready, Config, Callable[[], bool]],
    tuple[Collective | None, tuple[Computing, ...]],
]
"""Real steps and all-reduces of the recipe on the hosts, by workers that training would start."""


def check_cluster(
    cluster: Cluster | None,
    config: Config | None,
    rehearse: Rehearse | None = None,
    short: bool = False,
    workers: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> CheckResult:
    """Measures the hosts, or without a cluster this machine, and says what is wrong with them.

    `short` is for the start of a training: it describes hosts, compares clocks, and measures with
    one connection the links between neighbors in the host list, which an all-reduce uses. Disks,
    data, other programs and devices are left out, and nothing is rehearsed: a few seconds for any
    number of hosts.

    `tell` gets a few words about what is being done. Raises UserError if no host can be reached, or
    for what the host list or the recipe asks for and hosts do not have.
    """
    begun = time.monotonic()
    given = cluster or _this_machine()
    meanings = meanings_of(given) if cluster else {}
    check_public(given, meanings)
    check_twice(given, meanings)

    def choose(alive: Cluster, facts: Mapping[str, Facts]) -> Mapping[str, Interface]:
        if cluster is None:
            return {alive.hosts[0].name: Interface("lo", "127.0.0.1", 8)}
        return choose_interfaces(alive, meanings, {n: f.interfaces for n, f in facts.items()})

    with sessions_on(cluster, given.hosts[0]) as sessions:
        tell(f"asking {len(sessions)} host(s) what they are" if cluster else "looking around")
        prepared = _prepared(cluster, config) if not short else None
        descriptions, lost = examine.described(sessions, prepared, config.name if config else "")
        if not descriptions:
            raise UserError("\n       ".join(map(str, lost.values())))
        device = config.training.device if config else "auto"
        ready = examine.ready_of(given, descriptions, choose, device, workers)
        living = {name: sessions[name] for name in descriptions}
        hosts, lost_later = examine.examined(living, descriptions, ready, config, short, tell)
        lost |= lost_later
        played = _tournament(living, lost, ready, short, tell, is_stopping)
        lost |= {name: session.loss for name, session in living.items() if session.loss}
    vocabulary = _vocabulary(config) if config else 0
    collective, computing, rehearsal = None, tuple[Computing, ...](), list[Finding]()
    if config and rehearse and not short and not lost:
        tell("rehearsing steps of the recipe")
        try:
            collective, computing = rehearse(cluster, ready, config, is_stopping)
        except DragomanError as error:
            rehearsal = [Finding(subject="rehearsal", verdict="unfit", sentence=f"{error}")]
    workload = _workload(config, vocabulary, ready) if config else None
    examined = list(hosts.values())
    findings = [
        *examine.lost_findings(lost),
        *_host_findings(examined, cluster, config, workload, short, bool(lost)),
        *_network_findings(played, examined, workload, computing, len(given.hosts)),
        *rehearsal,
    ]
    return CheckResult(
        dragoman=__version__,
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=time.monotonic() - begun,
        recipe=config.name if config else None,
        workload_hash=workload_hash(config, vocabulary) if config else None,
        parameters=workload.parameters if workload else None,
        hosts=tuple(host.facts for host in examined),
        transfers=played.transfers,
        collective=collective,
        computing=computing,
        findings=tuple(findings),
    )


def _tournament(
    sessions: Mapping[str, Session],
    lost: Mapping[str, DragomanError],
    ready: Ready,
    short: bool,
    tell: Callable[[str], None],
    is_stopping: Callable[[], bool],
) -> Played:
    names = [name for name in sessions if name not in lost]
    rounds = around_the_ring(names) if short else round_robin(names)
    addresses = {name: ready.interfaces[name].address for name in names}
    several = 0 if short else SEVERAL_FLOWS
    return play(sessions, addresses, rounds, several, tell, is_stopping)


def _host_findings(
    hosts: list[Examined],
    cluster: Cluster | None,
    config: Config | None,
    workload: Workload | None,
    short: bool,
    has_lost: bool,
) -> list[Finding]:
    findings = [] if has_lost or not cluster else [_reached(hosts)]
    findings += verdicts.version_findings(hosts, code_hash(), __version__)
    findings += verdicts.clock_findings(hosts) if cluster else []
    if short:
        return findings
    findings += verdicts.device_findings(hosts)
    findings += verdicts.load_findings(hosts)
    findings += verdicts.disk_findings(hosts, workload)
    if config:
        here = data_hash(config.prepared_folder)["data"] if cluster else None
        findings += verdicts.data_findings(hosts, None if here == "damaged" else here)
        findings += verdicts.config_findings(hosts, config.name)
    return findings


def _network_findings(
    played: Played,
    hosts: list[Examined],
    workload: Workload | None,
    computing: tuple[Computing, ...],
    count: int,
) -> list[Finding]:
    rates = ports.rates_of(played.transfers)
    facts = [host.facts for host in hosts]
    blamed = ports.port_findings(rates)
    # What is seen in the figures needs no second line from what the interface announces.
    named = {name for finding in blamed for name in finding.hosts}
    announced = [f for f in links.announced_findings(facts) if not named & {*f.hosts}]
    if rates and not blamed and not announced:
        sentence = "No host sends or receives slower than the others."
        blamed = [Finding(subject="port", verdict="good", sentence=sentence)]
    paths = [
        *links.failure_findings(played.failures),
        *ports.path_findings(rates),
        *shared_findings(played.shared, had_company=count > 3),
    ]
    if len(ports.hosts_of(rates)) > 2 and not paths:
        sentence = "No pair is slower than the ports at its ends."
        paths = [Finding(subject="path", verdict="good", sentence=sentence)]
    are_alike = all(finding.verdict == "good" for finding in (*blamed, *announced))
    return [
        *blamed,
        *announced,
        *paths,
        *ports.flow_findings(played.transfers),
        *links.latency_findings(played.transfers),
        *links.link_findings(played.transfers, facts, workload, computing, are_alike),
    ]


def _reached(hosts: list[Examined]) -> Finding:
    sentence = "All hosts answer." if len(hosts) > 1 else "It answers."
    return Finding(subject="reach", verdict="good", sentence=sentence)


def _workload(config: Config, vocabulary: int, ready: Ready) -> Workload:
    most = max(ready.workers.values())
    return workload_of(config, vocabulary, ready.ranks, most, len(ready.workers))


def _vocabulary(config: Config) -> int:
    """Returns the pieces of the prepared data, or as many as the recipe asks for."""
    if (config.prepared_folder / PASSPORT_NAME).exists():
        try:
            return PreparedData.open(config.prepared_folder).passport.vocabulary
        except DragomanError as error:
            logger.warning(str(error))
    return config.tokenizer.vocabulary


def _prepared(cluster: Cluster | None, config: Config | None) -> str | None:
    if config is None:
        return None
    return f"prepared/{config.name}" if cluster else str(config.prepared_folder)


def _this_machine() -> Cluster:
    try:
        host = Host(name=socket.gethostname(), folder=".")
    except ValueError:
        host = Host(name="localhost", folder=".")
    return Cluster(hosts=(host,))
