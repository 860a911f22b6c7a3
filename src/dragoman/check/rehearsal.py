"""The launching side of a rehearsal: real workers measure what steps and sums of a run will take.

They are started as a run's workers are, by the same agents, on the same devices, interfaces and
threads, and report each in lines of output (`dragoman.training.rehearsal` is their side). No file
is written on any host. Without torch.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any

from dragoman.batches.shapes import StepShapes, shapes_of
from dragoman.check.result import Collective, Computing
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.job import Job, first_ranks
from dragoman.cluster.launch import Orders, launch_local, new_secret
from dragoman.cluster.preflight import Ready
from dragoman.cluster.remote_run import prepared_there, worker_environment
from dragoman.cluster.ssh import read_message
from dragoman.cluster.supervise import Agents, Outcome, agents_of_a_run
from dragoman.cluster.worker_log import WorkerLog
from dragoman.config import Config, dump_config
from dragoman.distributed.launchers import host_name
from dragoman.errors import DragomanError, RunError, UserError
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.training.batch_plan import plan_prepared

ORDER = "DRAGOMAN_REHEARSAL"
"""The environment variable that holds a worker's order."""
BOX_S = 5.0
"""About how long steps, sums, and whole steps may each take."""
START_S = 90.0
"""How long workers may take to start and meet beside that: some import torch from a cold disk."""
STEPS = 24
MOST_SHAPES = 2000
"""Micro-batches that an order describes, since it has to fit into one message."""

PHASES = {
    "": "starting",
    "started": "waiting for the others",
    "joined": "building the model",
    "computing": "computing",
    "summing": "summing gradients",
}
"""What a worker has reported last -> what it does since, in order."""

IsStopping = Callable[[], bool]


def rehearse_on(
    cluster: Cluster | None, ready: Ready, config: Config, is_stopping: IsStopping
) -> tuple[Collective | None, tuple[Computing, ...]]:
    """Rehearses on hosts, or without a cluster on this machine."""
    if cluster is None:
        return rehearse_here(config, ready.ranks, is_stopping)
    return rehearse(cluster, ready, config, is_stopping)


def rehearse(
    cluster: Cluster,
    ready: Ready,
    config: Config,
    is_stopping: IsStopping,
    box_s: float = BOX_S,
    agents: Agents | None = None,
) -> tuple[Collective | None, tuple[Computing, ...]]:
    """Returns what sums over all workers take, and what computing takes on each of them.

    There is no collective where one worker is alone. `agents` are those of a run, if it has begun;
    they stay for its workers. A host that fails, dies or does not come to an end raises an error
    that names it.
    """
    there = config.model_copy(
        update={"data": config.data.model_copy(update={"prepared": prepared_there(config)})}
    )
    order = _order(config, there, ready.ranks, box_s)
    secret, start = new_secret(), secrets.token_hex(8)
    firsts = first_ranks([ready.workers[host.name] for host in cluster.hosts])
    jobs = [
        Job(
            ["rehearse"],
            ready.workers[host.name],
            secret,
            start,
            first_rank=first,
            ranks=ready.ranks,
            environment={**worker_environment(ready, host), ORDER: order},
            folder=host.folder,
            relays=True,
        )
        for first, host in zip(firsts, cluster.hosts, strict=True)
    ]
    heard = _Heard(
        {
            first + number: host.name
            for first, host in zip(firsts, cluster.hosts, strict=True)
            for number in range(ready.workers[host.name])
        }
    )
    limits = _Limits(is_stopping, START_S + 4 * box_s)
    running: AbstractContextManager[Agents] = (
        nullcontext(agents) if agents else agents_of_a_run(heard.receive)
    )
    with running as used:
        outcome = used.run(cluster, jobs, limits, receive=heard.receive)
    return _result(heard, outcome, limits)


def rehearse_here(
    config: Config,
    workers: int,
    is_stopping: IsStopping,
    box_s: float = BOX_S,
    variables: Mapping[str, str] | None = None,
    shapes: Sequence[StepShapes] | None = None,
    start_s: float = START_S,
) -> tuple[Collective | None, tuple[Computing, ...]]:
    """Returns the same of workers on this machine.

    `variables` are added to their environment. `shapes` are taken instead of those of the recipe,
    and `start_s` instead of what workers may usually take to start.
    """
    order = _order(config, config, workers, box_s, shapes)
    heard = _Heard(dict.fromkeys(range(workers), host_name()))
    limits = _Limits(is_stopping, start_s + 4 * box_s)
    environment = {ORDER: order, **(variables or {})}
    code = launch_local(["rehearse"], workers, limits, _Lines(heard), environment)
    return _result(heard, Outcome(code), limits)


def shapes_here(config: Config, ranks: int) -> tuple[list[StepShapes], int | None]:
    """Returns shapes of some steps, and the vocabulary, from this machine's prepared data.

    Without such data there are none, nor where a step has too many: then workers take those of
    their hosts, or make some up.
    """
    if not (config.prepared_folder / PASSPORT_NAME).exists():
        return [], None
    prepared = PreparedData.open(config.prepared_folder)
    plan = plan_prepared(prepared, config, ranks)
    steps = min(STEPS, MOST_SHAPES // plan.micro_batches_per_step)
    return shapes_of(plan, steps), prepared.passport.vocabulary


def _order(
    config: Config,
    there: Config,
    ranks: int,
    box_s: float,
    given: Sequence[StepShapes] | None = None,
) -> str:
    """Returns what each worker is told; `there` is the config with the paths of the hosts, `given`
    are other shapes than those of the recipe."""
    shapes, vocabulary = (given, None) if given else shapes_here(config, ranks)
    return json.dumps(
        {
            "recipe": dump_config(there),
            "vocabulary": vocabulary or config.tokenizer.vocabulary,
            "shapes": shapes,
            "box_s": box_s,
        }
    )


class _Limits(Orders):
    """Has the workers killed when the user asks to stop, or when their time is over."""

    def __init__(self, is_stopping: IsStopping, seconds: float) -> None:
        super().__init__()
        self._is_stopping, self._ends_at = is_stopping, time.monotonic() + seconds
        self.seconds = seconds
        self.why = ""
        """stopped or late, once the workers have been killed for it."""

    def new(self) -> Iterator[str]:
        if not self.why and self._is_stopping():
            self.why = "stopped"
        elif not self.why and time.monotonic() > self._ends_at:
            self.why = "late"
        if self.why and not self.asked:
            self.asked = 1
            yield "kill"


class _Heard:
    """What the workers have reported so far; lines come from any thread."""

    def __init__(self, hosts: Mapping[int, str]) -> None:
        """`hosts` are those of each rank."""
        self.hosts = hosts
        self.collective: Collective | None = None
        self.computing: dict[int, Computing] = {}
        self.phases: dict[int, str] = {}
        self.errors: list[str] = []
        self._lock = threading.Lock()

    def receive(self, host: Host, message: dict[str, Any]) -> None:
        """Is the `Receive` of agents."""
        match message:
            case {"killed": int(), "line": str(line)}:
                with self._lock:
                    self.errors.append(line)
            case {"rank": int(), "line": str(line)}:
                self.take(line)

    def take(self, line: str) -> None:
        with self._lock:
            match read_message(line):
                case {"phase": str(phase), "rank": int(rank)}:
                    self.phases[rank] = phase
                case {"computing": found}:
                    computing = Computing.model_validate(found)
                    self.computing[computing.rank] = computing
                case {"collective": found}:
                    self.collective = Collective.model_validate(found)
                case None if line.startswith("error: "):
                    self.errors.append(line.removeprefix("error: "))

    @property
    def is_whole(self) -> bool:
        has_sums = self.collective is not None or len(self.hosts) == 1
        return has_sums and self.computing.keys() == self.hosts.keys()

    def hindmost(self) -> str:
        """Returns the hosts whose workers are furthest behind, and what they were doing."""
        order = [*PHASES]
        least = min((self.phases.get(rank, "") for rank in self.hosts), key=order.index)
        behind = [h for rank, h in self.hosts.items() if self.phases.get(rank, "") == least]
        doing = PHASES[least]
        are = "are" if len({*behind}) > 1 else "is"
        return f"{', '.join(dict.fromkeys(behind))} {are} still {doing}"


class _Lines(WorkerLog):
    """Passes the output of workers on this machine on to `heard`."""

    def __init__(self, heard: _Heard) -> None:
        super().__init__()
        self._heard = heard

    def _read(self, stream: IO[str], usual_level: int) -> None:
        for line in stream:
            self._heard.take(line.rstrip("\n"))


def _result(
    heard: _Heard, outcome: Outcome, limits: _Limits
) -> tuple[Collective | None, tuple[Computing, ...]]:
    """Returns what was measured; raises one sentence where that is not whole."""
    if heard.is_whole and not outcome.code:
        return heard.collective, tuple(heard.computing[rank] for rank in sorted(heard.computing))
    raise _explanation(heard, outcome, limits)


def _explanation(heard: _Heard, outcome: Outcome, limits: _Limits) -> DragomanError:
    if limits.why == "stopped":
        return RunError("stopped while workers were measuring; nothing was started")
    if limits.why == "late":
        return RunError(
            f"measuring steps and sums took longer than {limits.seconds:.0f} s: "
            f"{heard.hindmost()}; "
            "look at its load and its network, or go without"
        )
    if isinstance(outcome.error, UserError):  # such as an sshd that forwards no ports
        return outcome.error
    if outcome.lost:
        names = ", ".join(sorted(outcome.lost))
        return RunError(
            f"{names}: was lost while workers were measuring; it or its network went down"
        )
    if heard.errors:
        kind = UserError if outcome.code == UserError.exit_code else RunError
        return kind(heard.errors[0])
    if outcome.error:
        return outcome.error
    return RunError(f"the workers ended before they had measured anything: {heard.hindmost()}")
