"""When what happens in an attempt: each rank's parts of each step, and the pauses between steps.

Ranks begin a step together. A rank waits for its data, computes, and then for the slowest rank and
for the network: the gradients have arrived everywhere at the same moment. Of the network's time a
part passes beside backward.
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


@dataclass(frozen=True)
class Pace:
    """Seconds count from the start of the attempt; arrays of parts are ranks x steps."""

    steps: Ints
    """In the order in which they were done: a rollback repeats some."""
    begin: Floats
    parts: dict[str, Floats]
    step_s: Floats
    """The same for all ranks."""
    network_s: Floats
    """Of each step, whether or not it was hidden."""
    exposed_s: Floats
    """The network's part that no rank could hide."""
    straggling_s: Floats
    """How much later the last rank was ready than the first."""
    sent_bytes: Floats
    evaluated: Ints
    """Places in `steps` after which an evaluation follows."""
    saved: Ints
    rolled_back: Ints
    ends_s: float

    @property
    def end(self) -> Floats:
        return self.begin + self.step_s


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
    ready = data + forward + backward

    # Confirmations of what is received come on top of the bytes that the algorithm sends.
    sent = (
        wire_bytes(world, config) * link.traffic_factor * (1 + chance.uniform(0.002, 0.006, count))
    )
    network = np.zeros(count)
    if ranks > 1:
        rates = [
            np.broadcast_to(link.rate(steps, host), (count,)) for host in range(len(machines.hosts))
        ]
        slowest = np.min(rates, axis=0) if len(machines.hosts) > 1 else LOOPBACK_RATE
        delays = 2 * (ranks - 1) * link.messages * link.latency_s
        # A link is never faster than its rate, and now and then a little slower.
        network = (sent / slowest + delays) * (1 + np.abs(chance.normal(0, 0.02, count)))
    last_backward = backward.min(axis=0) / work.passes
    hidden = np.minimum(link.overlap * network, HIDDEN_AT_MOST * last_backward)
    exposed = network - hidden
    communication = ready.max(axis=0) + exposed - ready if ranks > 1 else np.zeros((1, count))

    looked, saved = _pauses(config, life, steps, rolled_back)
    stall = np.zeros(count)
    stall[(saved + 1)[saved + 1 < count]] = work.stall_s
    parts = {
        "data": data,
        "forward": forward,
        "backward": backward,
        "communication": communication,
        "checkpoint": np.broadcast_to(stall, (ranks, count)),
        "optimizer": np.broadcast_to(
            work.optimizer_s * np.exp(chance.normal(0, 0.03, count)), (ranks, count)
        ),
        # One small message tells every rank how the others are.
        "rest": np.broadcast_to(
            work.rest_s * np.exp(chance.normal(0, 0.1, count))
            + 2 * (ranks - 1) * link.latency_s * np.exp(chance.normal(0, 0.1, count)),
            (ranks, count),
        ),
    }
    if config.training.sharding == "full":  # weights are gathered all along
        waited = parts.pop("communication")
        parts["forward"] = forward + waited / 3
        parts["backward"] = backward + waited * 2 / 3
    step_s = np.sum(list(parts.values()), axis=0)[0]
    gap = np.zeros(count + 1)
    gap[0] = life.start_s
    gap[looked + 1] += world.learning.evaluation_s
    gap[rolled_back + 1] += RELOAD_S
    begin = np.cumsum(gap[:-1]) + np.cumsum(step_s) - step_s
    ends_s = float(np.sum(gap) + np.sum(step_s)) + life.silent_s + life.last_words_s
    return Pace(
        steps=steps,
        begin=begin,
        parts=parts,
        step_s=step_s,
        network_s=network,
        exposed_s=exposed if ranks > 1 else np.zeros(count),
        straggling_s=ready.max(axis=0) - ready.min(axis=0),
        sent_bytes=sent,
        evaluated=looked,
        saved=saved,
        rolled_back=rolled_back,
        ends_s=ends_s,
    )


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
