"""A check that was never made: hosts behind ports of a given rate, and what they would measure."""

from itertools import permutations

from dragoman import __version__
from dragoman.check.result import CheckResult, Collective, Computing, HostFacts, Transfer


def checked(
    hosts=4,
    rate=11.9e6,
    elements=1_000_000,
    efficiency=1.0,
    step_s=(0.5, 0.52, 0.51),
    recipe="wmt16-en-de",
    parameters=60_880_896,
    has_collective=True,
    has_computing=True,
    backend="gloo",
    all_to_all_s=(),
    whole_step_s=(),
    **changes,
):
    names = [f"node{number}" for number in range(1, hosts + 1)]
    taken_s = 2 * (hosts - 1) / hosts * 4 * elements / (rate * efficiency)
    steps = 2 * max(1, hosts - 1)
    return CheckResult(
        dragoman=__version__,
        checked_at="2026-11-17T12:00:00Z",
        seconds=12.0,
        recipe=recipe,
        workload_hash=None,
        parameters=parameters,
        hosts=tuple(host(name, **changes) for name in names),
        transfers=tuple(
            Transfer(
                sender=sender,
                receiver=receiver,
                one_flow_bytes_per_s=rate,
                several_flows_bytes_per_s=rate,
                round_trip_s=2e-4,
            )
            for sender, receiver in permutations(names, 2)
        ),
        collective=Collective(
            backend=backend,
            ranks=hosts,
            elements=elements,
            seconds=(taken_s + steps * 1e-4,) * 3,
            latency_s=steps * 1e-4,
            all_to_all_s=all_to_all_s,
            whole_step_s=whole_step_s,
            whole_step_mode="fp32" if whole_step_s else "",
        )
        if has_collective and hosts > 1
        else None,
        computing=tuple(
            Computing(
                host=name,
                rank=rank,
                step_s=step_s,
                forward_s=0.2,
                backward_s=0.25,
                last_backward_s=0.25,
                update_s=0.03,
                micro_batches=1,
                peak_memory_bytes=2_000_000_000,
            )
            for rank, name in enumerate(names)
        )
        if has_computing
        else (),
    )


def host(name, **changes):
    facts = {
        "name": name,
        "address": "10.0.0.1",
        "interface": "eth0",
        "link_bytes_per_s": None,
        "python": "3.11",
        "torch": "2.13.0",
        "dragoman": __version__,
        "driver": None,
        "cores": 2,
        "workers": 1,
        "device": "CPU",
        "device_memory_bytes": 8_000_000_000,
        "gemm_flops_per_s": 1e11,
        "free_disk_bytes": 10**11,
        "disk_bytes_per_s": 5e8,
        "clock_offset_s": 0.0,
        "price_per_hour": 0.5,
    }
    return HostFacts(**facts | changes)
