"""What really happens in a simulated run. Frozen values, no arithmetic of the diagnosis in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dragoman.telemetry.events import EndCause

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Course = Callable[[Ints, int], Floats | float]
"""(step numbers, number of a rank or host) -> a value at each of these steps."""
Curve = Callable[[Floats], Floats]
"""Step numbers -> nats."""

GBIT_S = 1e9 / 8
MBIT_S = 1e6 / 8


def always(value: float) -> Course:
    return lambda steps, who: value


NOTHING = always(0.0)
FAST_LINK = always(25 * GBIT_S)
SHORT_WAIT = always(0.002)


def only(who: int, value: float, otherwise: float = 0.0) -> Course:
    """`value` for one rank or host, `otherwise` for all the rest."""
    return lambda steps, asked: value if asked == who else otherwise


def since(step: int, before: float, after: float) -> Course:
    return lambda steps, who: np.where(steps < step, before, after)


def at(chosen: Callable[[Ints], npt.NDArray[np.bool_]], value: Course, otherwise: Course) -> Course:
    """One course at the chosen steps, another at all the rest."""
    return lambda steps, who: np.where(chosen(steps), value(steps, who), otherwise(steps, who))


def scattered(share: float, seed: int = 5) -> Callable[[Ints], npt.NDArray[np.bool_]]:
    """A share of the steps, at random: the same ones for every rank and host."""

    def chosen(steps: Ints) -> npt.NDArray[np.bool_]:
        drawn = np.random.default_rng(seed).random(int(steps.max(initial=0)) + 1)
        return np.asarray(drawn[steps] < share)

    return chosen


def periodic(every: int, first: int, count: int) -> Callable[[Ints], npt.NDArray[np.bool_]]:
    """In each `every` steps, `count` of them from place `first` on."""
    return lambda steps: (steps - first) % every < count


@dataclass(frozen=True)
class Machines:
    hosts: Sequence[str] = ("node-a", "node-b")
    ranks_per_host: int = 1
    device: Literal["cuda", "cpu"] = "cuda"
    name: str = "Tesla V100-SXM2-16GB"
    precision: str = "bf16"
    cores: int = 16
    memory_bytes: float = 16.9e9
    """Of a device; on a CPU, of the host."""
    efficiency: float = 0.55
    """Of the peak in large matrix products that the model reaches while it computes."""
    power_limit_w: float = 300.0
    power_computing_w: float = 262.0
    clock_mhz: float = 1455.0
    foreign_cpu_percent: Course = NOTHING
    """By host: what other programs take of all its cores; the ranks compute with the rest."""
    steal_percent: Course = NOTHING
    """By host: what the hypervisor gives to other machines."""
    quota_cores: Course = NOTHING
    """By host: how many cores' time the ranks together may take; 0: all. A container's limit, which
    shows in what the ranks take and leaves the cores idle."""

    @property
    def ranks(self) -> int:
        return len(self.hosts) * self.ranks_per_host

    def host_of(self, rank: int) -> int:
        return rank // self.ranks_per_host


@dataclass(frozen=True)
class Link:
    rate: Course = FAST_LINK
    """By host, bytes a second in each direction. A ring passes from each host to the next, and its
    slowest hop sets the pace."""
    nominal_mbit_s: int = 25_000
    """What the port says of itself."""
    latency_s: float = 50e-6
    """From one host to another."""
    messages: int = 10
    """All-reduces of a step: DDP's buckets."""
    overlap: float = 0.7
    """Of the network's time, what can pass beside backward, as long as backward lasts."""
    traffic_factor: float = 1.0
    """Bytes counted against those that the algorithm needs."""
    retransmitted_share: float = 1e-5
    send_rate: Course | None = None
    """By host, where sending has a lower limit than `rate`."""
    receive_rate: Course | None = None
    """The same of receiving."""
    early_return: float = 0.5
    """Of the exposed network time, how much earlier than the last rank the first one may leave the
    all-reduce: a rank is done when its own last segment has come."""
    segments: int = 1
    """In how many pieces a rank passes on its share of a message. Of many small ones nobody sees
    bursts."""
    shows_on_interfaces: bool = True
    """False: the bytes pass from device to device, as NCCL's do within a machine."""


@dataclass(frozen=True)
class Work:
    """Of one rank in one step, in seconds, when nothing is in its way."""

    forward_s: float = 0.30
    backward_s: float = 0.58
    optimizer_s: float = 0.02
    rest_s: float = 0.008
    data_s: Course = SHORT_WAIT
    slowed_s: Course = NOTHING
    """By rank: what forward and backward take beyond that. The optimizer of a slow rank is slow by
    the same factor."""
    optimizer_slowed_s: Course = NOTHING
    """By rank: what the optimizer takes beyond that."""
    paused_s: Course = NOTHING
    """By rank: what passes before the gradients are made, and no part of a step names."""
    jitter: float = 0.015
    """Of forward and backward of a rank, relative."""
    batch_spread: float = 0.03
    """The same for all ranks: batches differ."""
    first_step_s: float = 6.0
    """Of each attempt, beyond what other steps take: memory is found, kernels are chosen."""
    stall_s: float = 0.06
    """In the step after a save: the update waits for the copy."""
    slow_copy_s: Course = NOTHING
    """By host: what the copy takes beyond that."""
    passes: int = 1
    """Micro-batches of a rank. Gradients travel beside the backward of the last one only."""
    padding: float = 0.04
    """Of all positions, those that hold no token."""
    memory_share: float = 0.7
    """Of the device's, at the peak."""


@dataclass(frozen=True)
class Learning:
    validation: Curve
    train_sample: Curve | None
    wobble: float = 0.004
    """From one evaluation to the next: where the weights happen to be. Common to both losses by
    half."""
    loss_error: float = 0.02
    """Standard error from the choice of sentences. The sentences stay the same, so it shifts the
    whole curve and not one point of it."""
    bleu_at_floor: float = 28.0
    bleu_per_nat: float = 14.0
    floor: float = 1.2
    bleu_error: float = 0.5
    bleu_wobble: float = 0.12
    has_bleu: bool = True
    evaluation_s: float = 20.0
    running: Curve | None = None
    """Of the training loss with dropout and smoothing; None: follows the training sample."""
    running_noise: float = 0.06
    spikes: Mapping[int, float] = field(default_factory=dict)
    """Step -> height in nats; heals within some twenty steps."""
    skipped: Sequence[int] = ()
    """Steps whose gradients are not finite."""


@dataclass(frozen=True)
class Rollback:
    at: int
    to: int
    why: str


@dataclass(frozen=True)
class Life:
    """One attempt."""

    first_step: int
    last_step: int
    state: Literal["finished", "preempted", "failed", ""] = "finished"
    """Empty: it ends without a word, or is still running."""
    reason: str = ""
    cause: EndCause = ""
    """Empty: the usual one of the state, which is a limit of steps, a signal or an error."""
    culprit: tuple[int, str] | None = None
    """Rank and host whose fault it was."""
    could_not_write: bool = False
    """The disk was full."""
    start_s: float = 15.0
    """From the start to the first step."""
    last_words_s: float = 1.0
    """From the last step, evaluation or save to the event that ends the attempt."""
    silent_s: float = 0.0
    """After the last step nothing happens for so long, while sensors are still read."""
    down_s: float = 120.0
    """Until the next attempt starts."""
    rollbacks: Sequence[Rollback] = ()
    machines: Machines | None = None
    """None: those of the world."""
    link: Link | None = None
    """None: that of the world."""


@dataclass(frozen=True)
class Recorded:
    """What of all this is written down."""

    agreement: bool = True
    """False: the wait in the step's small message is part of `rest`, as in older records."""
    sensors: bool = True
    peaks: bool = True
    """The highest rates of the interfaces; older records have none."""
    counts: bool = True
    traffic: bool = True
    devices: bool = True
    errors: bool = True
    """Error bars of evaluations."""
    checkpoints: bool = True
    manifest: bool = True
    test_score: float | None = None


@dataclass(frozen=True)
class Dataset:
    lines_in: int = 4_610_000
    lines: int = 4_524_868
    source_bytes: int = 909_000_000
    target_bytes: int = 971_000_000
    tokens: int = 138_000_000
    """Of the target side."""


@dataclass(frozen=True)
class Started:
    """How somebody has started the run, each time alike."""

    launcher: str
    command: Sequence[str]
    """Of rank 0."""
    options: Sequence[str] = ()
    """Those of `dragoman train` that say where it runs."""


@dataclass(frozen=True)
class Clocks:
    ahead_s: Sequence[float] = (0.0, 0.03, -0.02, 0.05)
    """Wall clock of each host, against the true time."""
    jumps: Sequence[tuple[float, int, float]] = ()
    """(seconds since the run began, host, by how much its wall clock is set)."""


@dataclass(frozen=True)
class World:
    learning: Learning
    lives: Sequence[Life]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the recipe, dotted, beside those of `recipe.BASE`; None takes one out."""
    machines: Machines = Machines()
    link: Link = Link()
    work: Work = Work()
    recorded: Recorded = Recorded()
    dataset: Dataset = Dataset()
    clocks: Clocks = Clocks()
    started: Started | None = None
    """None: not recorded."""
    rate_factor: Callable[[Ints], Floats | float] = lambda steps: 1.0
    """What the learning rate is multiplied by, against the schedule's."""
    seed: int = 1
    began_at: float = 1_760_000_000.0
