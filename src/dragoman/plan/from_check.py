"""A setup from what a check has measured: hosts, their computing, and the way between them.

What the check lacks is assumed as without one, and says so.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from dragoman.check import result as measured_by
from dragoman.check.result import CheckResult, HostFacts
from dragoman.config import Config
from dragoman.errors import UserError
from dragoman.forecast.computing import passes_of
from dragoman.forecast.processing import CPU, GPU
from dragoman.forecast.quantity import assumed, exact, repeated, trimmed_mean, widened
from dragoman.plan.assumption import Assumption
from dragoman.plan.calibration import Calibrated, contention_of, latency_of, ports_of, queue_of
from dragoman.plan.data import Data
from dragoman.plan.from_assumption import computing_of
from dragoman.plan.modes import forecast_mode
from dragoman.plan.setup import LOCAL_RATE, NO_QUEUE, Computing, Setup

GPU_BETWEEN_RUNS = 0.1
"""By how much a run may differ from a check without other reason: batches differ, so do hours."""
CPU_BETWEEN_RUNS = 0.17
"""Likewise: cores, caches and memory are shared with strangers. Five runs of the same work took
0.369 to 0.475 s a step (docs/plan.md), a standard deviation of 10 %, of which nine in ten are
within 1.65."""
LEAST_OF_COMPUTING = 0.7
"""Share of its measured computing below which no whole steps can bring a forecast."""
_WHOLE_STEP_MODES = ("fp32", "bf16")
"""Whose steps are one update each; the only ones that a check times."""


def setup_from_check(config: Config, result: CheckResult, data: Data) -> Setup:
    """Refuses a check without computing where there is no GEMM speed to forecast it from."""
    hosts, ranks = len(result.hosts), sum(host.workers for host in result.hosts)
    # The model knows hosts that are alike: as many workers in all, shared out evenly.
    on_host = max(1, round(ranks / hosts))
    is_cpu = any(_is_cpu(host) for host in result.hosts)
    latency = latency_of(result, ranks)
    local = assumed(LOCAL_RATE, 1.0, "assumed: between workers of one host")
    ports = ports_of(result, latency.value, ranks, on_host)
    if hosts == 1 and ports:
        local = ports.hop
    rates = ports or Calibrated(local, local, local)
    processor = CPU if is_cpu else GPU
    memory = min(host.device_memory_bytes for host in result.hosts)
    peaks = [each.peak_memory_bytes for each in result.computing if each.peak_memory_bytes]
    names = ", ".join(host.name for host in result.hosts)
    setup = Setup(
        origin=f"Measured by the check of {names} at {result.checked_at}.",
        hosts=hosts,
        ranks_on_host=on_host,
        hop_rate=rates.hop,
        send_rate=rates.send,
        receive_rate=rates.receive,
        latency_s=latency,
        local_rate=local,
        computing=_computing(config, result, data, is_cpu),
        processor=processor,
        contention=contention_of(result, is_cpu, ranks),
        device=result.hosts[0].device,
        memory_bytes=exact(memory, "read from the host that has the least", is_measured=True),
        prices=tuple(host.price_per_hour or config.cost.host_per_hour for host in result.hosts),
        queue_s=queue_of(rates.hop.value) if hosts > 1 else NO_QUEUE,
        link_efficiency=rates.efficiency,
        spread_efficiency=rates.spread_efficiency,
        peak_memory_bytes=exact(max(peaks), "the largest of all workers", is_measured=True)
        if peaks
        else None,
    )
    return _with_whole_steps(config, setup, result, data)


def _is_cpu(host: HostFacts) -> bool:
    return host.driver is None


def _with_whole_steps(config: Config, setup: Setup, result: CheckResult, data: Data) -> Setup:
    """Returns the setup with computing as whole steps have shown it, if any were timed.

    Whole steps know what their parts do not: how computing and sums slow each other on the same
    cores, and how workers wait for each other. They count by their number, beside the steps that
    computed alone.
    """
    timed = result.collective
    if not timed or not timed.whole_step_s or timed.whole_step_mode not in _WHOLE_STEP_MODES:
        return setup
    if timed.whole_step_mode != config.sync.mode:
        return setup
    parts_s = forecast_mode(config, config.sync, setup, data).step_s
    alone = max((len(each.step_s) for each in result.computing), default=0)
    share = len(timed.whole_step_s) / (len(timed.whole_step_s) + alone)
    beyond_s = share * (trimmed_mean(timed.whole_step_s) - parts_s)
    basis = f"{setup.computing.factor.basis}, {len(timed.whole_step_s)} with gradients on their way"
    computed_s = setup.work("likely").seconds
    # What the two say of each other is known no better than by what they differ.
    factor = widened(setup.computing.factor._replace(basis=basis), abs(beyond_s) / computed_s)
    computing = replace(setup.computing, factor=factor)
    if beyond_s >= 0:
        return replace(setup, computing=replace(computing, rest_s=computing.rest_s + beyond_s))
    least = max(LEAST_OF_COMPUTING, 1 + beyond_s / computed_s)
    return replace(
        setup, computing=replace(computing, factor=computing.factor.map(lambda f: least * f))
    )


def _computing(config: Config, result: CheckResult, data: Data, is_cpu: bool) -> Computing:
    """Returns the computing of real steps, or else of the measured speed of products."""
    if result.computing:
        return _of_steps(result.computing, data, is_cpu)
    speeds = [host.gemm_flops_per_s for host in result.hosts if host.gemm_flops_per_s]
    if not speeds:
        raise UserError(
            "the check has measured neither steps nor products of matrices, so that computing "
            "cannot be forecast from it; check the hosts again"
        )
    given = Assumption(
        text="",
        nodes=len(result.hosts),
        workers=max(host.workers for host in result.hosts),
        flops_per_s=min(speeds),
        is_cpu=is_cpu,
    )
    return computing_of(config, given, data)


def _of_steps(timed: Sequence[measured_by.Computing], data: Data, is_cpu: bool) -> Computing:
    """All wait for the slowest worker of each step, so its time counts, step by step."""
    slowest = max(timed, key=lambda each: statistics.fmean(each.step_s))
    together = [max(times) for times in zip(*(each.step_s for each in timed), strict=False)]
    between_runs = CPU_BETWEEN_RUNS if is_cpu else GPU_BETWEEN_RUNS
    step = repeated(together, f"{len(together)} real steps of {len(timed)} workers", between_runs)
    own_s = statistics.fmean(slowest.step_s)
    waits = step.value / own_s if own_s else 1.0
    most = max(1, *(each.micro_batches for each in timed))
    count = data.micro_batches
    while passes_of(count, len(timed)) < most:  # the check knew the data, and the plan does not
        count *= 2
    # The slowest worker need not have the most micro-batches, but its time is that of the step.
    all_passes = waits * count / passes_of(count, len(timed))
    parts_s = slowest.forward_s + slowest.backward_s + slowest.update_s
    return Computing(
        forward_s=all_passes * slowest.forward_s,
        backward_s=all_passes * slowest.backward_s,
        update_s=waits * slowest.update_s,
        rest_s=waits * max(0.0, own_s - parts_s),
        micro_batches=count,
        factor=step.map(lambda seconds: seconds / step.value),
    )
