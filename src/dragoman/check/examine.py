"""Lets hosts describe and time themselves, side by side: sessions come in, what each host is and
can do goes out, and why others cannot be used."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dragoman.check.result import Finding, HostFacts
from dragoman.check.session import Session, on_each
from dragoman.check.verdicts import Examined, as_sentence
from dragoman.cluster.hosts import Cluster
from dragoman.cluster.launch import check_devices
from dragoman.cluster.network import Interface
from dragoman.cluster.preflight import Facts, Ready, workers_of
from dragoman.config import Config, parse_config
from dragoman.errors import DragomanError
from dragoman.telemetry.clocks import RoundTrip, estimate
from dragoman.training.claim import incompatible_changes

START_S = 30.0
"""Until a host's program has answered once: ssh, and Python from a cold disk."""
DESCRIBE_S = 120.0
"""A host has its prepared data to read and to compare with their hashes."""
QUICK_S = 10.0
DISK_S = 60.0
"""A disk of 100 kB/s needs 40 s for the first, small write."""
WARM_S = 90.0
"""Importing torch from a cold network disk takes a minute."""
COMPUTE_S = 30.0
CLOCK_TRIES = 8

Tell = Callable[[str], None]
Lost = dict[str, DragomanError]


def described(
    sessions: Mapping[str, Session], prepared: str | None, run: str
) -> tuple[dict[str, dict[str, Any]], Lost]:
    """Returns each host's description, and why others have none."""

    def ask(session: Session) -> dict[str, Any]:
        session.ask("clock", START_S)  # whoever does not even do this need not be waited for
        folder = session.host.folder
        return session.ask(
            "describe", DESCRIBE_S, folder=folder, prepared=prepared or "prepared", run=run
        )

    answers = on_each(sessions, ask)
    found = {n: a for n, a in answers.items() if not isinstance(a, DragomanError)}
    return found, {n: a for n, a in answers.items() if isinstance(a, DragomanError)}


def ready_of(
    cluster: Cluster,
    descriptions: Mapping[str, dict[str, Any]],
    choose: Callable[[Cluster, Mapping[str, Facts]], Mapping[str, Interface]],
    device: str,
    workers: int | None,
) -> Ready:
    """Returns the hosts that have answered, as a training would start on them."""
    facts = {name: Facts.from_answer(dict(d["facts"])) for name, d in descriptions.items()}
    present = tuple(host for host in cluster.hosts if host.name in facts)
    alive = cluster.model_copy(update={"hosts": present})
    counts = {host.name: workers_of(host, facts, device, workers) for host in present}
    for name, count in counts.items():
        cuda = facts[name].cuda_devices if device != "cpu" else 0
        check_devices(count, cuda, facts[name].cores, name)
    return Ready(alive, facts, choose(alive, facts), counts)


def examined(
    sessions: Mapping[str, Session],
    descriptions: Mapping[str, dict[str, Any]],
    ready: Ready,
    config: Config | None,
    short: bool,
    tell: Tell,
) -> tuple[dict[str, Examined], Lost]:
    """Returns what each host has measured of itself; `short` leaves out what takes seconds."""
    device = config.training.device if config else "auto"
    is_cuda = device != "cpu" and any(facts.cuda_devices for facts in ready.facts.values())
    lost: Lost = {}
    hosts = {
        name: _described(ready, name, descriptions[name], is_cuda, config) for name in sessions
    }

    def on_living(do: Callable[[Session], dict[str, Any]]) -> dict[str, Any]:
        living = {n: s for n, s in sessions.items() if n not in lost}
        answers = on_each(living, do)
        lost.update(
            {
                name: answer
                for name, answer in answers.items()
                if isinstance(answer, DragomanError) and sessions[name].loss
            }
        )
        return answers

    tell("comparing clocks")
    for name, clock in on_living(_compared_clock).items():
        if not isinstance(clock, DragomanError):
            hosts[name] = _with_facts(
                replace(hosts[name], clock_error_s=clock["error_s"]),
                clock_offset_s=clock["offset_s"],
            )
    if short:
        return hosts, lost
    tell("looking for other programs")
    loads = on_living(lambda s: s.ask("load", QUICK_S, interface=ready.interfaces[s.name].name))
    for name, load in loads.items():
        if not isinstance(load, DragomanError):
            hosts[name] = _with_load(hosts[name], load)
    tell("writing to disks")
    kind = "cuda" if is_cuda else "cpu"
    on_living(lambda s: s.ask("warm up", QUICK_S, workers=ready.workers[s.name], device=kind))
    disks = on_living(lambda s: s.ask("disk", DISK_S, folder=ready.facts[s.name].folder))
    for name, disk in disks.items():
        if isinstance(disk, DragomanError):
            hosts[name] = replace(hosts[name], disk_error=_plain(name, disk))
        else:
            hosts[name] = _with_facts(hosts[name], disk_bytes_per_s=disk["bytes_per_s"])
    tell("computing")
    waited = on_living(lambda s: s.ask("wait", WARM_S))
    warm = {name for name, answer in waited.items() if not isinstance(answer, DragomanError)}
    speeds = on_living(lambda s: s.ask("compute", COMPUTE_S) if s.name in warm else {})
    for name, speed in speeds.items():
        if not isinstance(speed, DragomanError) and speed.get("workers"):
            hosts[name] = _with_speed(hosts[name], speed["workers"])
    return hosts, lost


def lost_findings(lost: Mapping[str, DragomanError], subject: str = "reach") -> list[Finding]:
    return [
        Finding(subject=subject, verdict="unfit", sentence=as_sentence(str(e)), hosts=(name,))
        for name, e in lost.items()
    ]


def _compared_clock(session: Session) -> dict[str, Any]:
    """Compares wall clocks by messages there and back, as NTP does."""
    trips = []
    for _ in range(CLOCK_TRIES):
        sent_at = time.time()
        answer = session.ask("clock", QUICK_S)
        trips.append(RoundTrip(sent_at, answer["heard_at"], answer["answered_at"], time.time()))
    between = estimate(trips)
    return {"offset_s": -between.offset_s, "error_s": between.error_s}


def _described(
    ready: Ready, name: str, answer: Mapping[str, Any], is_cuda: bool, config: Config | None
) -> Examined:
    facts, interface, workers = ready.facts[name], ready.interfaces[name], ready.workers[name]
    host = next(host for host in ready.cluster.hosts if host.name == name)
    gpus = tuple(answer["gpus"])
    of_device = (
        (gpus[0]["name"], gpus[0].get("memory_bytes", 0))
        if is_cuda and gpus
        else (answer["processor"], answer["memory_bytes"] // workers)
    )
    return Examined(
        facts=HostFacts(
            name=name,
            address=interface.address,
            interface=interface.name,
            link_bytes_per_s=answer["links"].get(interface.name),
            python=facts.python,
            torch=facts.torch,
            dragoman=facts.version,
            driver=answer["driver"],
            cores=facts.cores,
            workers=workers,
            device=of_device[0],
            device_memory_bytes=of_device[1],
            gemm_flops_per_s=None,
            free_disk_bytes=answer["free_bytes"],
            disk_bytes_per_s=None,
            clock_offset_s=0.0,
            price_per_hour=host.price_per_hour,
            data_hash=None if facts.data_error else facts.data,
        ),
        code=facts.code,
        gpus=gpus if is_cuda else (),
        data_error=facts.data_error,
        other_config=_other_settings(answer["config"], config) if config else (),
    )


def _other_settings(text: str | None, config: Config) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        before = parse_config(text, origin="a run")
    except DragomanError:
        return ("it cannot be read",)
    return tuple(key for key, _, _ in incompatible_changes(before, config))


def _with_facts(host: Examined, **changes: Any) -> Examined:
    return replace(host, facts=host.facts.model_copy(update=changes))


def _with_load(host: Examined, load: Mapping[str, Any]) -> Examined:
    return replace(
        host,
        processor_share=load["processor_share"],
        steal_share=load["steal_share"],
        processes=tuple((p["name"], p["pid"], p["cores"]) for p in load["processes"]),
        sent_bytes_per_s=load["sent_bytes_per_s"],
        received_bytes_per_s=load["received_bytes_per_s"],
    )


def _with_speed(host: Examined, workers: list[dict[str, Any]]) -> Examined:
    speed = statistics.median(worker["flops_per_s"] for worker in workers)
    first = workers[0]
    of_gpu = (
        {"device": first["device"], "device_memory_bytes": first["memory_bytes"]}
        if "device" in first
        else {}
    )
    return _with_facts(host, gemm_flops_per_s=speed, **of_gpu)


def _plain(name: str, error: DragomanError) -> str:
    return str(error).removeprefix(f"{name}: ")
