"""A setup from an assumption in words; every figure of it is assumed, with a stated width."""

from dragoman.config import Config
from dragoman.distributed.ring_bytes import on_the_wire
from dragoman.forecast.computing import operations_of, passes_of, work_of
from dragoman.forecast.processing import CPU, GPU
from dragoman.forecast.quantity import assumed, exact
from dragoman.plan.assumption import Assumption
from dragoman.plan.data import Data
from dragoman.plan.setup import LOCAL_RATE, Computing, Setup

MTU = 1500
RATE_WIDTH = 0.05
"""Ports rarely give less than they are sold for, and TCP takes what is there."""
GLOO_RING, GLOO_ALL_TO_ALL = 0.87, 0.55
"""Shares of the rate of a link that gloo reaches: what a receiver has to say before more may be
sent waits behind what it is sending itself, so that both directions take turns now and then.
Of training steps in a lab, 2 to 4 nodes, 10 and 100 Mbit/s (`make bench-plan`)."""
GLOO_WIDTH = 0.1
QUEUE_BYTES, QUEUE_WIDTH = 64_000, 2.0
"""That wait for a port which is always busy: 50 ms at 10 Mbit/s, as steps of `local` between lab
nodes have shown."""
LATENCY_S = 1e-4
"""Of a message through one switch, with what the backend adds to it."""
LATENCY_WIDTH = 2.0
CONTENTION_WIDTH = 0.5
GPU_UTILIZATION, GPU_WIDTH = 0.35, 0.6
"""Share of the promised FLOP/s that Transformers of this size reach, published as 30 to 50 %; a
GPU that is fast for the model reaches less."""
CPU_UTILIZATION, CPU_WIDTH = 0.6, 0.25
"""Share of a measured product of large matrices (docs/performance.md: 60 to 65 %)."""
COMPUTING_WIDTH = 0.05
"""Where the seconds of computing are given."""
SHARED_WIDTH = 0.25
"""Where the speed that a CPU reaches is given: other hours on the same machine differ so much,
since its cores, caches and memory are shared with strangers."""
REST_S = 0.003
"""Of a step: bookkeeping, telemetry and what else is in none of the parts."""


def setup_from_assumption(config: Config, given: Assumption, data: Data) -> Setup:
    send, receive = given.send_bits_per_s, given.receive_bits_per_s
    payload = 1 / on_the_wire(1.0, MTU)
    basis = f"assumed: --assume, and {1 - payload:.0%} of it for headers"
    ring, spread, width = (
        (GLOO_RING, GLOO_ALL_TO_ALL, GLOO_WIDTH) if given.is_cpu else (1.0, 1.0, RATE_WIDTH)
    )
    slower = min(send or 8e12, receive or 8e12)
    latency = (
        assumed(given.latency_s, 0.1, "assumed: --assume")
        if given.latency_s is not None
        else assumed(LATENCY_S, LATENCY_WIDTH, "assumed: what a switch and the backend take")
    )
    processor = CPU if given.is_cpu else GPU
    memory = given.memory_bytes
    price = config.cost.host_per_hour if given.price_per_hour is None else given.price_per_hour
    return Setup(
        origin=f"Nothing was measured: all follows from --assume {given.text!r}.",
        hosts=given.nodes,
        ranks_on_host=given.workers,
        hop_rate=assumed(ring * slower / 8 * payload, width, basis),
        send_rate=assumed(spread * (send or 8e12) / 8 * payload, width, basis),
        receive_rate=assumed(spread * (receive or 8e12) / 8 * payload, width, basis),
        latency_s=latency,
        local_rate=assumed(LOCAL_RATE, 1.0, "assumed: between workers of one host"),
        computing=computing_of(config, given, data),
        processor=processor,
        contention=assumed(
            processor.communication_s_per_byte,
            CONTENTION_WIDTH,
            "assumed: gloo's own work, which takes cores from training"
            if given.is_cpu
            else "assumed: none, since a GPU computes",
        ),
        device="CPU" if given.is_cpu else "GPU",
        memory_bytes=exact(memory, "assumed: --assume") if memory else None,
        prices=(price,) * given.nodes,
        queue_s=assumed(
            QUEUE_BYTES / (slower / 8 * payload), QUEUE_WIDTH, "assumed: 64 kB in a queue"
        ),
        link_efficiency=ring,
        spread_efficiency=spread,
    )


def computing_of(config: Config, given: Assumption, data: Data) -> Computing:
    """Returns the computing of an update from the speed of a device, or from given seconds."""
    ranks = given.nodes * given.workers
    count = data.micro_batches
    while count < ranks:
        count *= 2
    operations = operations_of(config, data.vocabulary, data.lengths)
    usual, width = (CPU_UTILIZATION, CPU_WIDTH) if given.is_cpu else (GPU_UTILIZATION, GPU_WIDTH)
    if given.utilization is not None:
        usual, width = given.utilization, SHARED_WIDTH if given.is_cpu else COMPUTING_WIDTH
    processor = CPU if given.is_cpu else GPU
    promised = given.flops_per_s or 1e13
    work = work_of(
        *(config, data.vocabulary, operations, count, count, usual * promised, processor)
    )
    known = data.basis.removeprefix("assumed: ")
    factor = assumed(
        1.0, width, f"assumed: {promised / 1e12:g} TFLOP/s used to {usual:.0%}; {known}"
    )
    if given.computing_s is not None:
        # The share of each part is as it would be at any speed.
        own = passes_of(count, ranks) / count
        products_s = work.forward_s + work.backward_s
        update_s = min(work.update_s, 0.1 * given.computing_s)
        scale = (given.computing_s - update_s) / (own * products_s)
        work = work._replace(
            forward_s=scale * work.forward_s,
            backward_s=scale * work.backward_s,
            update_s=update_s,
        )
        factor = assumed(1.0, COMPUTING_WIDTH, "assumed: --assume")
    return Computing(
        forward_s=work.forward_s,
        backward_s=work.backward_s,
        update_s=work.update_s,
        rest_s=0.0 if given.computing_s is not None else REST_S,
        micro_batches=data.micro_batches,
        factor=factor,
    )
