"""Continues a run without hosts that are lost, and takes in those that return (`min_hosts`)."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.launch import Orders
from dragoman.cluster.preflight import Facts, Ready
from dragoman.cluster.supervise import Outcome
from dragoman.errors import DragomanError, UserError
from dragoman.rundir import RunDir
from dragoman.telemetry.record.status import read_status

logger = logging.getLogger(__name__)

FRUITLESS_STARTS = 5
"""Starts in a row without a single step, after which no other is tried."""
POLL_HOSTS_EVERY_S = 10.0
WAIT_FOR_HOSTS_S = 5.0

GatherHosts = Callable[[Cluster, Mapping[str, Facts]], Ready]
"""Returns which candidates can take part, given what is known of some of them already."""
ProbeHost = Callable[[Host], Facts | None]
"""Returns the facts of a host that was missing; None or an error if it cannot take part."""


class HostPoller:
    """Polls the hosts that are missing until one of them is back."""

    def __init__(self, cluster: Cluster, present: Cluster, probe_host: ProbeHost) -> None:
        names = {host.name for host in present.hosts}
        self._missing = [host for host in cluster.hosts if host.name not in names]
        self._probe_host = probe_host
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="lookout", daemon=True)
        self.found: dict[str, Facts] = {}

    def __enter__(self) -> "HostPoller":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def has_found(self) -> bool:
        return bool(self.found)

    def _poll(self) -> None:
        while self._missing and not self.found and not self._ended.wait(POLL_HOSTS_EVERY_S):
            for host in self._missing:
                with suppress(DragomanError):
                    facts = self._probe_host(host)
                    if facts and not self._ended.is_set():
                        self.found[host.name] = facts
                        logger.info(f"{host.name} is back; the run pauses to include it")


def start_until_done(
    cluster: Cluster,
    run: RunDir,
    gather_hosts: GatherHosts,
    start: Callable[[Ready, HostPoller], Outcome],
    probe_host: ProbeHost,
    given: Orders,
) -> tuple[Ready | None, Outcome]:
    """Starts the run; with min_hosts again, without lost hosts and with those that return.

    Returns no `Ready` if the user asked to stop before anything had started.
    """
    try:
        ready = gather_hosts(cluster, {})
    except DragomanError:
        if given.asked:
            return None, Outcome(0)
        raise
    fruitless = 0
    while True:
        step = read_status(run).step
        with HostPoller(cluster, ready.cluster, probe_host) as poller:
            outcome = start(ready, poller)
        # Workers that are asked before the first step leave the run's state as it was.
        is_paused = outcome.code == 0 and poller.found and read_status(run).state != "finished"
        is_mistake = outcome.code == UserError.exit_code and not outcome.lost
        may_start_again = cluster.min_hosts is not None and not is_mistake
        if given.asked or not (is_paused or (outcome.code and may_start_again)):
            return ready, outcome
        fruitless = 0 if read_status(run).step > step else fruitless + 1
        if fruitless >= FRUITLESS_STARTS:
            logger.warning(f"{fruitless} starts in a row completed no step; giving up")
            return ready, outcome
        if outcome.error:
            logger.warning(str(outcome.error))
        known = {n: facts for n, facts in ready.facts.items() if n not in outcome.lost}
        known |= poller.found
        candidates = next_candidates(cluster, known)
        again = _wait_for_hosts(gather_hosts, candidates, known, given)
        if again is None:
            return ready, outcome
        ready = again
        names = ", ".join(host.name for host in ready.cluster.hosts)
        logger.info(f"starting again with {names}: the global batch stays the same")


def next_candidates(cluster: Cluster, known: Collection[str]) -> Cluster:
    """Returns the hosts that are known to be up, in the order of the list.

    Returns all hosts if that would be too few: some may be back by now.
    """
    present = tuple(host for host in cluster.hosts if host.name in known)
    if len(present) < (cluster.min_hosts or len(cluster.hosts)):
        return cluster
    return cluster.model_copy(update={"hosts": present})


def _wait_for_hosts(
    gather_hosts: GatherHosts, candidates: Cluster, known: Mapping[str, Facts], given: Orders
) -> Ready | None:
    """Waits until enough hosts can be reached; returns None if the user asks to stop meanwhile."""
    while not given.asked:
        try:
            return gather_hosts(candidates, known)
        except DragomanError as error:
            logger.warning(f"{error}\n         waiting for at least {candidates.min_hosts} host(s)")
            time.sleep(WAIT_FOR_HOSTS_S)
    return None
