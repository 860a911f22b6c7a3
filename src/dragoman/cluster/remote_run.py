"""`dragoman train --hosts`: a run on several machines whose records and results come home."""

import logging
import os
import secrets
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dragoman.checkpoints.names import point_to
from dragoman.checkpoints.run_id import run_id
from dragoman.cluster.elastic import HostPoller, start_until_done
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.job import Job, first_ranks
from dragoman.cluster.launch import Orders, new_secret, user_set
from dragoman.cluster.outlook import NoOutlook, Outlook
from dragoman.cluster.preflight import (
    Facts,
    Ready,
    check_data,
    facts_of,
    on_all,
    preflight,
    workers_of,
)
from dragoman.cluster.supervise import Agents, Outcome, agents_of_a_run
from dragoman.cluster.transfer import fetch_checkpoint, run_there, send_folder
from dragoman.config import Config, dump_config
from dragoman.console import Progress
from dragoman.distributed.launchers import HOST_NAME
from dragoman.errors import DragomanError, RunError
from dragoman.installation import SETUP_COMMAND
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.storage.credentials import storage_variables
from dragoman.telemetry.replication import RecordPiece, RecordReceiver, record_sizes
from dragoman.training.claim import RUN_ID, as_found, write_found
from dragoman.version import code_hash

logger = logging.getLogger(__name__)


def train_on_hosts(
    config: Config,
    run: RunDir,
    cluster: Cluster,
    workers: int | None,
    oversubscribe: bool,
    given: Orders,
    outlook: Outlook | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Checks the hosts, copies what is missing, trains, and fetches the results.

    `outlook` may look ahead before the first start, and refuse it. `variables` are added to the
    workers' environment. Returns the exit code of the first host that failed, or 0.
    """
    outlook = outlook or NoOutlook()
    token = f".home-{secrets.token_hex(8)}"
    (run.root / token).touch()
    try:
        logger.info(f"checking {', '.join(host.name for host in cluster.hosts)}")
        with agents_of_a_run(Receiver(run, outlook)) as agents:
            ready, outcome = run_until_done(
                *(config, run, cluster, workers, oversubscribe, token, given, agents, outlook),
                variables,
            )
        if ready is None:
            return 0  # asked to stop before anything had started
        write_found(run)
        try:
            fetch_checkpoints(ready.cluster, run, token)
        except DragomanError as error:
            if outcome.code == 0:
                raise
            logger.warning(str(error))
    finally:
        with suppress(OSError):
            (run.root / token).unlink()
    if outcome.error:
        raise outcome.error
    return outcome.code


def run_until_done(
    config: Config,
    run: RunDir,
    cluster: Cluster,
    workers: int | None,
    oversubscribe: bool,
    token: str,
    given: Orders,
    agents: Agents,
    outlook: Outlook,
    variables: Mapping[str, str],
) -> tuple[Ready | None, Outcome]:
    prepared = prepared_there(config)
    foreseen: list[tuple[Ready, Mapping[str, str]]] = []

    def is_stopping() -> bool:
        return given.asked > 0

    def gather_hosts(candidates: Cluster, known: Mapping[str, Facts]) -> Ready:
        ready = preflight(
            *(candidates, prepared, config.training.device, workers),
            known,
            oversubscribe,
            is_stopping,
        )
        if not foreseen:
            foreseen.append((ready, outlook.before_start(ready, agents, is_stopping)))
        return bring_data(ready, config, prepared, is_stopping)

    def start(ready: Ready, poller: HostPoller) -> Outcome:
        for host in ready.cluster.hosts:
            interface = ready.interfaces[host.name]
            logger.info(
                f"  {host.name}: {ready.workers[host.name]} worker(s), "
                f"{interface.address} on {interface.name}"
            )
        before, of_forecast = foreseen[0]
        # Only for the hosts for which it was made; a zygote may have kept that of an earlier start.
        holds = before.workers == ready.workers
        of_forecast = of_forecast if holds else dict.fromkeys(of_forecast, "")
        jobs = jobs_of(ready, config, run, token, {**variables, **of_forecast})
        return agents.run(ready.cluster, jobs, given, poller.has_found)

    def probe_host(host: Host) -> Facts | None:
        """Returns the host's facts, after copying what it lacks and starting its agent.

        The run continues meanwhile."""
        facts = facts_of(cluster, host, prepared, is_stopping)
        if facts.code != code_hash():
            return None
        alone = cluster.model_copy(update={"hosts": (host,), "min_hosts": None})
        count = workers_of(host, {host.name: facts}, config.training.device, workers)
        ready = Ready(alone, {host.name: facts}, {}, {host.name: count})
        facts = bring_data(ready, config, prepared, is_stopping).facts[host.name]
        warming = secrets.token_hex(8)
        job = Job([], count, "", warming, environment=user_set(), folder=host.folder)
        agents.warm_up(cluster, host, replace(job, only_warm_up=True, relays=True))
        return facts

    return start_until_done(cluster, run, gather_hosts, start, probe_host, given)


def prepared_there(config: Config) -> str:
    """Returns where hosts have the prepared data, from their folder: where it is by default."""
    return f"prepared/{config.name}"


def jobs_of(
    ready: Ready, config: Config, run: RunDir, token: str, variables: Mapping[str, str]
) -> list[Job]:
    """Returns the job of each host's agent, in the order of the host list.

    `variables` are added to the workers' environment."""
    cluster = ready.cluster
    secret, start = new_secret(), secrets.token_hex(8)
    firsts = first_ranks([ready.workers[host.name] for host in cluster.hosts])
    recipe = f"recipes/{config.name}.toml"
    # Left out, it is `prepared_there`: a relative path would begin at the recipe's folder.
    there = as_found(run, config).model_copy(
        update={"data": config.data.model_copy(update={"prepared": ""})}
    )
    identity = run_id(run)
    setup = shlex.join(["dragoman", "setup", str(run.config), "--hosts", cluster.given])
    return [
        Job(
            ["train", recipe, "--run", run_there(run)],
            ready.workers[host.name],
            secret,
            start,
            first_rank=first,
            ranks=ready.ranks,
            environment={
                **worker_environment(ready, host),
                **(storage_variables(os.environ) if config.uses_storage else {}),
                **variables,
                RUN_ID: identity,
                SETUP_COMMAND: setup,
            },
            folder=host.folder,
            files={recipe: dump_config(there)},
            run=run_there(run),
            run_id=identity,
            known=record_sizes(run),
            home_token=token,
            relays=True,
        )
        for first, host in zip(firsts, cluster.hosts, strict=True)
    ]


def bring_data(
    ready: Ready, config: Config, prepared: str, is_stopping: Callable[[], bool]
) -> Ready:
    """Copies the prepared data to the hosts that lack it, with progress, unless they fetch it.

    Returns what is known of the hosts afterwards.
    """
    if config.data.prepared_from:
        return ready
    here = None
    if (config.prepared_folder / PASSPORT_NAME).exists():
        here = PreparedData.open(config.prepared_folder).passport.content_hash
    reference, lacking = check_data(ready.facts, here)
    if reference and not lacking:
        return ready
    data = prepare(config)
    reference, lacking = check_data(ready.facts, data.passport.content_hash)
    names = data.files()
    size = sum((data.folder / name).stat().st_size for name in names)
    logger.info(f"copying {size / 1e6:,.1f} MB of prepared data to {', '.join(lacking)}")
    missing = ready.cluster.model_copy(
        update={"hosts": tuple(host for host in ready.cluster.hosts if host.name in lacking)}
    )
    total = size * len(lacking)
    with (
        Progress("copying data", "bytes", total) as progress,
        progress.ticking(),
    ):

        def advance(amount: int) -> None:
            if is_stopping():
                raise RunError("stopped while copying data; the same command copies it again")
            progress.advance(amount)

        on_all(
            missing,
            lambda host: send_folder(ready.cluster, host, data.folder, names, prepared, advance),
        )
    facts = {name: replace(of_host, data=reference) for name, of_host in ready.facts.items()}
    return replace(ready, facts=facts)


def fetch_checkpoints(cluster: Cluster, run: RunDir, token: str) -> None:
    """Fetches the checkpoints that `latest` and `best` point to on the first host."""
    host = cluster.hosts[0]
    with Progress("bringing checkpoints home", "bytes") as progress:
        for link in ("latest", "best"):
            name = fetch_checkpoint(cluster, host, run, link, run_id(run), token, progress.advance)
            if name:
                point_to(run.checkpoints, link, name)


class Receiver:
    """Receives messages from the hosts: output is logged, records are added to the run."""

    def __init__(self, run: RunDir, outlook: Outlook) -> None:
        self._records, self._outlook = RecordReceiver(run), outlook

    def __call__(self, host: Host, message: dict[str, Any]) -> None:
        match message:
            case {"rank": int(rank), "line": str(line)}:
                logger.info(f"{host.name} {rank} | {line}")
            case {"killed": int(rank), "line": str(line)}:
                logger.info(f"{host.name} {rank} | error: {line}")
            case {"record": str(name), "begin": _, "text": str(text)}:
                self._records.add(RecordPiece.from_message(message))
                self._outlook.record_came(host.name, name, text)
            case {"record": str(), "begin": _, "base64": str()}:
                self._records.add(RecordPiece.from_message(message))
            case {"dropped": int(lines)}:
                logger.info(f"{host.name} | {lines:,} lines of output were lost in transit")


def worker_environment(ready: Ready, host: Host) -> dict[str, str]:
    """Returns what workers of the host need to know of its name and its network."""
    interface = ready.interfaces[host.name].name
    chosen = {
        HOST_NAME: host.name,
        "GLOO_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",  # exactly this one, not all with this prefix
    }
    if ready.cluster.allow_public:
        chosen["DRAGOMAN_ALLOW_PUBLIC"] = "1"
    return user_set() | chosen
