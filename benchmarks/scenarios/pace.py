"""When what happens in an attempt: each rank's parts of each step, and the pauses between steps.

All ranks leave the small message at the end of a step together, but for the time that a message
takes. From there each goes its own way: its copy, its optimizer, its data, its computing. The
gradients cannot be everywhere before the last rank is ready, and the network's exposed time passes
after that; but a rank leaves the all-reduce when its own last segment has come, which may be well
before the last rank does, and waits for it in the next small message.
"""

from dataclasses import dataclass

import numpy as np

from dragoman.config import Config
from scenarios.recipe import parameters_of
from scenarios.world import Course, Floats, Ints, Life, World

ETHERNET_BYTES, PAYLOAD_BYTES = 1514, 1448
"""Of a full packet: on the wire, and of it what TCP carries."""
LOOPBACK_RATE = 6e9
RELOAD_S = 25.0
"""Going back to a checkpoint within an attempt."""
HIDDEN_AT_MOST = 0.8
"""Of backward: before that the first gradients are not there."""
MESSAGE_S = 3e-4
"""Of a small message, beyond what the way takes."""


@dataclass(frozen=True)
class Pace:
    """Seconds count from the start of the attempt; arrays of ranks are ranks x steps."""

    steps: Ints
    """In the order in which they were done: a rollback repeats some."""
    begin: Floats
    """Of each rank."""
    parts: dict[str, Floats]
    """Of each rank, in the order in which they happen."""
    step_s: Floats
    """Of each rank."""
    network_s: Floats
    """Of each step, whether or not it was hidden."""
    arrived: Floats
    """When the gradients of each step are everywhere."""
    exposed_s: Floats
    """From the moment at which the last rank is ready to the one at which the last one is done."""
    straggling_s: Floats
    """How much later the last rank was ready than the first."""
    ready_s: Floats
    """Of each rank, from where it left the small message before."""
    sent_bytes: Floats
    """Of a host."""
    evaluated: Ints
    """Places in `steps` after which an evaluation follows."""
    saved: Ints
    rolled_back: Ints
    ends_s: float

    @property
    def end(self) -> Floats:
        """Of each rank."""
        return self.begin + self.step_s

    @property
    def over(self) -> Floats:
        """When the last rank is done with each step."""
        ends: Floats = self.end.max(axis=0)
        return ends


def steps_of(life: Life) -> tuple[Ints, Ints]:
    """Step numbers in order, and the places after which the run goes back."""
    pieces: list[Ints] = []
    first = life.first_step
    for rollback in life.rollbacks:
        pieces.append(np.arange(first, rollback.at + 1))
        first = rollback.to + 1
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64) - 1
    return np.concatenate([*pieces, np.arange(first, life.last_step + 1)]), ends


def pace_of(world: World, config: Config, life: Life, chance: np.random.Generator) -> Pace:
    machines, work, link = world.machines, world.work, world.link
    steps, rolled_back = steps_of(life)
    count, ranks = len(steps), machines.ranks
    batch = np.exp(chance.normal(0, work.batch_spread, count))

    def noisy(spread: float) -> Floats:
        return np.exp(chance.normal(0, spread, (ranks, count)))

    slowed = _by_rank(work.slowed_s, steps, ranks)
    forward = work.forward_s * batch * noisy(work.jitter) + slowed / 3
    backward = work.backward_s * batch * noisy(work.jitter) + slowed * 2 / 3
    if count:
        forward[:, 0] += work.first_step_s * noisy(0.02)[:, 0]
    data = _by_rank(work.data_s, steps, ranks) * noisy(0.25)
    slower = 1 + slowed / (work.forward_s + work.backward_s)
    optimizer = work.optimizer_s * slower * noisy(0.03)
    optimizer += _by_rank(work.optimizer_slowed_s, steps, ranks)
    updates_late = np.zeros((ranks, count))
    if machines.device == "cuda":
        # The host goes on while the GPU updates; the next step waits for it and records it.
        updates_late[:, 1:] = optimizer[:, :-1]
        optimizer = np.zeros((ranks, count))
    evaluated, saved = _pauses(config, life, steps, rolled_back)
    checkpoint = np.zeros((ranks, count))
    after_save = (saved + 1)[saved + 1 < count]
    for rank in range(ranks):
        copying = work.stall_s + work.slow_copy_s(steps, machines.host_of(rank))
        checkpoint[rank, after_save] = np.broadcast_to(copying, (count,))[after_save]
    rest = work.rest_s * slower * noisy(0.1)
    way_s = 2 * (ranks - 1) * link.latency_s + MESSAGE_S if ranks > 1 else 0.0
    message = way_s * np.exp(chance.normal(0, 0.1, count))
    leaves_late = way_s / 2 * chance.random((ranks, count))

    # Ranks come out of an evaluation or a rollback together; else each goes on when it is done.
    after = leaves_late + checkpoint + optimizer + rest
    after[:, np.union1d(evaluated, rolled_back)] = after.max(axis=0)[
        np.union1d(evaluated, rolled_back)
    ]
    head_start = np.concatenate([np.zeros((ranks, 1)), after[:, :-1]], axis=1)[:, :count]
    # Something that no part names, such as a process that is not scheduled.
    paused = _by_rank(work.paused_s, steps, ranks) * noisy(0.1)
    ready = head_start + updates_late + data + forward + backward + paused

    # Confirmations of what is received come on top of the bytes that the algorithm sends.
    sent = (
        wire_bytes(world, config) * link.traffic_factor * (1 + chance.uniform(0.002, 0.006, count))
    )
    network = np.zeros(count)
    if ranks > 1:
        slowest = hop_rates(world, steps).min(axis=0) if len(machines.hosts) > 1 else LOOPBACK_RATE
        delays = 2 * (ranks - 1) * link.messages * link.latency_s
        # A link is never faster than its rate, and now and then a little slower.
        network = (sent / slowest + delays) * (1 + np.abs(chance.normal(0, 0.02, count)))
    last_backward = backward.min(axis=0) / work.passes
    hidden = np.minimum(link.overlap * network, HIDDEN_AT_MOST * last_backward)
    exposed = network - hidden
    done = ready.max(axis=0) + exposed * _places(world, count, chance)
    communication = done - ready if ranks > 1 else np.zeros((1, count))
    agreed = ready.max(axis=0) + exposed + message
    agreement = agreed + leaves_late - done if ranks > 1 else np.zeros((1, count))
    if config.training.sharding == "full":  # weights are gathered all along
        waited = communication + agreement - message
        forward, backward = forward + waited / 3, backward + waited * 2 / 3
        agreement = np.broadcast_to(message, (ranks, count))
    parts = {
        "data": data,
        "forward": forward,
        "backward": backward,
        "communication": communication,
        "agreement": agreement,
        "checkpoint": checkpoint,
        "optimizer": optimizer + updates_late,
        "rest": rest + paused,
    }
    if config.training.sharding == "full":
        del parts["communication"]
    gap = np.zeros(count + 1)
    gap[0] = life.start_s
    gap[evaluated + 1] += world.learning.evaluation_s
    gap[rolled_back + 1] += RELOAD_S
    # Each rank counts from its own end of the message before, not from a common one, and through
    # evaluations; the first step of an attempt from its beginning.
    ready_s = ready + gap[:-1]
    if count:
        ready_s[:, 0] -= gap[0]
    ready_s[:, 1:] -= leaves_late[:, :-1]
    # Seconds from the start of the attempt to the end of each small message.
    agreed_at = np.cumsum(gap[:-1] + agreed)
    begin = agreed_at - agreed + head_start
    step_s = np.sum(list(parts.values()), axis=0)
    over_s = float((begin + step_s).max()) if count else life.start_s
    ends_s = over_s + float(gap[-1] if count else 0.0) + life.silent_s + life.last_words_s
    return Pace(
        steps=steps,
        begin=begin,
        parts=parts,
        step_s=step_s,
        network_s=network,
        arrived=agreed_at - message,
        exposed_s=exposed if ranks > 1 else np.zeros(count),
        straggling_s=ready.max(axis=0) - ready.min(axis=0),
        ready_s=ready_s,
        sent_bytes=sent,
        evaluated=evaluated,
        saved=saved,
        rolled_back=rolled_back,
        ends_s=ends_s,
    )


def port_rates(world: World, steps: Ints) -> tuple[Floats, Floats]:
    """Bytes a second that each host can send and receive: hosts x steps."""
    link, hosts = world.link, len(world.machines.hosts)
    both = _by_rank(link.rate, steps, hosts)
    sends, receives = (
        np.minimum(both, _by_rank(own, steps, hosts)) if own else both
        for own in (link.send_rate, link.receive_rate)
    )
    return sends, receives


def hop_rates(world: World, steps: Ints) -> Floats:
    """Bytes a second from each host to the next in the ring: hosts x steps."""
    sends, receives = port_rates(world, steps)
    rates: Floats = np.minimum(sends, np.roll(receives, -1, axis=0))
    return rates


def wire_bytes(world: World, config: Config) -> float:
    """What a host sends in a step, headers included: a ring of fp32 gradients."""
    ranks = world.machines.ranks
    if ranks == 1:
        return 0.0
    volume = 4.0 * parameters_of(config) * (ranks - 1) / ranks
    # Sharded: weights are gathered for forward and for backward, gradients are scattered.
    volume *= 3 if config.training.sharding == "full" else 2
    if len(world.machines.hosts) == 1:
        return volume * ranks
    return volume * ETHERNET_BYTES / PAYLOAD_BYTES


def _places(world: World, count: int, chance: np.random.Generator) -> Floats:
    """Where in the exposed network time each rank leaves the all-reduce: ranks x steps, up to 1.

    By its place in the ring, counted from one that differs from world to world, and by chance."""
    ranks = world.machines.ranks
    first = int(chance.integers(ranks)) if ranks > 1 else 0
    order = (np.arange(ranks) + first) % ranks / max(1, ranks - 1)
    early = world.link.early_return * (order[:, None] + chance.normal(0, 0.06, (ranks, count)))
    early = np.clip(early, 0.0, world.link.early_return)
    places: Floats = 1 - early + early.min(axis=0)
    return places


def _by_rank(course: Course, steps: Ints, ranks: int) -> Floats:
    return np.array(
        [np.broadcast_to(course(steps, rank), steps.shape) for rank in range(ranks)], dtype=float
    )


def _pauses(config: Config, life: Life, steps: Ints, rolled_back: Ints) -> tuple[Ints, Ints]:
    """Places after which the run evaluates, and after which it saves."""
    is_end = np.zeros(len(steps), dtype=bool)
    if len(steps) and life.state in ("finished", "preempted"):
        is_end[-1] = True
    looks = steps % config.evaluation.every_steps == 0
    looks |= is_end & (life.state == "finished")
    every = config.checkpoints.every_steps
    saves = looks | is_end | (steps % every == 0 if every else False)
    looks[rolled_back] = False
    saves[rolled_back] = False
    return np.flatnonzero(looks), np.flatnonzero(saves)
