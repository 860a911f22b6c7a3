"""What is wrong with hosts themselves: what they have measured comes in, findings go out. Pure.

Every subject gets a line, also where all is well, so that a reader sees what was looked at.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.check.matrix import flops
from dragoman.check.result import Finding, HostFacts, Verdict
from dragoman.check.workload import Workload
from dragoman.diagnosis.phrasing import bit_rate, count, listed, percent, rate, seconds, size

SETUP = "dragoman setup --hosts ..."
CLOCK_S = 1.0
"""Training corrects for clocks, but files, logs and certificates of hosts go by them."""
CLOCK_UNFIT_S = 60.0
"""Beyond a minute a host has no time service at all, and TLS or signed requests begin to fail."""
LEAST_FREE_BYTES = 1_000_000_000
LOW_FREE_BYTES = 10_000_000_000
SLOW_DISK_BYTES_PER_S = 20e6
"""A checkpoint of transformer-base, 0.9 GB with its optimizer, takes 45 s there."""
SLOW_SAVE_S = 120.0
BUSY_SHARE = 0.15
"""Of a host's cores in use by others: more slows down a step that waits for the last worker."""
STEAL_SHARE = 0.05
BUSY_LINK_SHARE = 0.05
"""Of the link: what others send there is missing in every step."""
SLOW_GEMM, UNFIT_GEMM = 0.7, 0.4
"""Of what the others reach in the median. Devices of a kind differ by less than 10 %; products that
share cores with other programs by more."""


@dataclass(frozen=True)
class Examined:
    """A host with what only verdicts need beside its facts."""

    facts: HostFacts
    code: str = ""
    """Hash of its Dragoman."""
    clock_error_s: float = 0.0
    processor_share: float = 0.0
    """Of its cores, busy while the check does nothing there."""
    steal_share: float = 0.0
    processes: tuple[tuple[str, int, float], ...] = ()
    """The busiest others: (name, process id, cores)."""
    sent_bytes_per_s: float = 0.0
    received_bytes_per_s: float = 0.0
    gpus: tuple[Mapping[str, Any], ...] = ()
    data_error: str = ""
    disk_error: str = ""
    other_config: tuple[str, ...] = field(default=())
    """Settings in which a run of the same name on the host differs from the recipe."""

    @property
    def name(self) -> str:
        return self.facts.name


def version_findings(hosts: Sequence[Examined], code: str, version: str) -> list[Finding]:
    """`code` and `version` are those of this machine."""
    found = []
    for host in hosts:
        if host.code != code:
            what = (
                f"has Dragoman {host.facts.dragoman}, and here it is {version}"
                if host.facts.dragoman != version
                else f"has different code of Dragoman {version} than this machine"
            )
            found.append(
                _finding("versions", "unfit", host, f"{what}; make it the same with: {SETUP}")
            )
    found += _differing(hosts, "torch", "unfit", lambda facts: facts.torch.split("+")[0])
    minor = lambda facts: ".".join(facts.python.split(".")[:2])  # noqa: E731
    found += _differing(hosts, "Python", "warning", minor)
    found += _differing(hosts, "GPU driver", "warning", lambda facts: facts.driver or "none")
    first = hosts[0].facts
    return found or [
        _all_well(
            "versions",
            f"Dragoman {version}, torch {first.torch} and Python {first.python}"
            + (f", driver {first.driver}" if first.driver else "")
            + (" everywhere." if len(hosts) > 1 else "."),
        )
    ]


def data_findings(hosts: Sequence[Examined], here: str | None) -> list[Finding]:
    """`here` is the hash of the data on this machine; None if there is none."""
    found = [_finding("data", "unfit", host, host.data_error) for host in hosts if host.data_error]
    known = [host for host in hosts if host.facts.data_hash and not host.data_error]
    reference = here or (known[0].facts.data_hash if known else None)
    where = "here" if here else known[0].name if known else ""
    found += [
        _finding(
            "data",
            "unfit",
            host,
            f"its prepared data has hash {(host.facts.data_hash or '')[:12]}, and {where} it is "
            f"{(reference or '')[:12]}; remove it there, and training copies the right one",
        )
        for host in known
        if host.facts.data_hash != reference
    ]
    if found:
        return found
    lacking = [host.name for host in hosts if not host.facts.data_hash]
    if not reference:
        return [_all_well("data", "It is not prepared yet; training prepares it at its start.")]
    if lacking:
        words = f"{listed(lacking)} {'has' if len(lacking) == 1 else 'have'} none yet"
        return [_all_well("data", f"{words}; training copies {reference[:12]} at its start.")]
    return [_all_well("data", f"The same everywhere, {reference[:12]}, and whole.")]


def config_findings(hosts: Sequence[Examined], recipe: str) -> list[Finding]:
    found = [
        _finding(
            "config",
            "warning",
            host,
            f"has a run {recipe} of other settings ({listed(host.other_config[:3])}); "
            "if it is another run, give this one its own folder with --run",
        )
        for host in hosts
        if host.other_config
    ]
    return found or [_all_well("config", f"No host has another run by the name {recipe}.")]


def clock_findings(hosts: Sequence[Examined]) -> list[Finding]:
    found = []
    for host in hosts:
        offset_s, error_s = host.facts.clock_offset_s, host.clock_error_s
        if abs(offset_s) - error_s <= CLOCK_S:
            continue
        way = "ahead of" if offset_s > 0 else "behind"
        found.append(
            _finding(
                "clock",
                "unfit" if abs(offset_s) > CLOCK_UNFIT_S else "warning",
                host,
                f"its clock is {seconds(abs(offset_s))} {way} that of this machine (to within "
                f"{seconds(error_s)}); switch on a time service there, such as chrony",
            )
        )
    largest_s = max(abs(host.facts.clock_offset_s) for host in hosts)
    error_s = max(host.clock_error_s for host in hosts)
    within = f"Within {seconds(largest_s)} of this machine's, known to {seconds(error_s)}."
    return found or [_all_well("clock", within)]


def disk_findings(hosts: Sequence[Examined], workload: Workload | None) -> list[Finding]:
    found = []
    for host in hosts:
        free, speed = host.facts.free_disk_bytes, host.facts.disk_bytes_per_s
        needed = LEAST_FREE_BYTES
        what = "a run needs more"
        if workload:
            needed = workload.checkpoint_bytes * workload.kept_checkpoints
            what = (
                f"{workload.kept_checkpoints} checkpoints of {workload.recipe} take {size(needed)}"
            )
        if host.disk_error:
            found.append(_finding("disk", "unfit", host, host.disk_error))
        elif free < needed:
            words = f"only {size(free)} are free for its runs, and {what}; free some space"
            found.append(_finding("disk", "unfit", host, words))
        elif free < LOW_FREE_BYTES and not workload:
            words = f"{size(free)} are free for its runs; a large model needs more"
            found.append(_finding("disk", "warning", host, words))
        elif speed and workload and workload.checkpoint_bytes / speed > SLOW_SAVE_S:
            words = (
                f"its disk writes {rate(speed)}, so that a checkpoint of "
                f"{size(workload.checkpoint_bytes)} takes "
                f"{seconds(workload.checkpoint_bytes / speed)}; use a faster disk"
            )
            found.append(_finding("disk", "warning", host, words))
        elif speed and speed < SLOW_DISK_BYTES_PER_S and not workload:
            words = f"its disk writes {rate(speed)}; checkpoints will take long"
            found.append(_finding("disk", "warning", host, words))
    least = min(host.facts.free_disk_bytes for host in hosts)
    speeds = [host.facts.disk_bytes_per_s for host in hosts if host.facts.disk_bytes_per_s]
    written = f", written at {rate(min(speeds))} with fsync" if speeds else ""
    return found or [_all_well("disk", f"At least {size(least)} free{written}.")]


def load_findings(hosts: Sequence[Examined]) -> list[Finding]:
    found = []
    for host in hosts:
        if host.processor_share >= BUSY_SHARE:
            cores = host.processor_share * host.facts.cores
            names = [f"{name} (process {pid}, {used:.1f})" for name, pid, used in host.processes]
            by = f", most by {listed(names)}" if names else ""
            words = (
                f"others keep {cores:.1f} of its {count(host.facts.cores, 'core')} busy{by}; "
                "end them, or every step waits for this host"
            )
            found.append(_finding("load", "warning", host, words))
        elif host.steal_share >= STEAL_SHARE:
            words = (
                f"its provider gives {percent(host.steal_share)} of its processor time to others "
                "(steal); ask for a machine that is not shared"
            )
            found.append(_finding("load", "warning", host, words))
        link = host.facts.link_bytes_per_s or 0.0
        for does, used in (
            ("sends", host.sent_bytes_per_s),
            ("receives", host.received_bytes_per_s),
        ):
            if link and used > BUSY_LINK_SHARE * link:
                words = f"already {does} {bit_rate(used)} over {host.facts.interface}; end that"
                found.append(_finding("load", "warning", host, words))
    return _folded(found) or [_all_well("load", "Nothing else computes there.")]


def device_findings(hosts: Sequence[Examined]) -> list[Finding]:
    """Returns what NVML knows of GPUs, and which host computes slower than the others."""
    found = [problem for host in hosts for problem in _gpu_problems(host)]
    speeds = {
        host.name: host.facts.gemm_flops_per_s for host in hosts if host.facts.gemm_flops_per_s
    }
    for host in hosts:
        own = speeds.get(host.name)
        others = [speed for name, speed in speeds.items() if name != host.name]
        usual = statistics.median(others) if others else 0.0
        if own and own < SLOW_GEMM * usual:
            alike = {other.facts.device for other in hosts} == {host.facts.device}
            why = "though its device is the same" if alike else f"with {host.facts.device}"
            words = (
                f"multiplies matrices at {flops(own)} per worker, the others at {flops(usual)}, "
                f"{why}; every step waits for it"
            )
            is_unfit = alike and own < UNFIT_GEMM * usual
            found.append(_finding("device", "unfit" if is_unfit else "warning", host, words))
    names = list(dict.fromkeys(host.facts.device for host in hosts))
    workers = sum(host.facts.workers for host in hosts)
    speed = f", {flops(min(speeds.values()))} each in fp32" if speeds else ""
    return found or [_all_well("device", f"{count(workers, 'worker')} on {listed(names)}{speed}.")]


def _gpu_problems(host: Examined) -> list[Finding]:
    found = []
    for gpu in host.gpus:
        name = f"GPU {gpu['number']}"
        if gpu.get("is_lost"):
            words = f"{name} does not answer its driver; restart the host or leave it out"
            found.append(_finding("device", "unfit", host, words))
            continue
        if errors := gpu.get("ecc_errors", 0):
            words = (
                f"{name} has had {count(errors, 'memory error')} that could not be corrected since "
                "it was started; restart the host, and replace the card if they return"
            )
            found.append(_finding("device", "unfit", host, words))
        if slowdowns := gpu.get("slowdowns"):
            words = f"{name} runs below its clock ({listed(slowdowns)}); check cooling and power"
            found.append(_finding("device", "warning", host, words))
    return found


def _differing(
    hosts: Sequence[Examined], what: str, verdict: Verdict, version_of: Any
) -> list[Finding]:
    """Returns the hosts that have another version than most, and of a tie than the first one."""
    versions = [version_of(host.facts) for host in hosts]
    usual = max(versions, key=versions.count)
    return [
        _finding(
            "versions",
            verdict,
            host,
            f"has {what} {version}, and {hosts[versions.index(usual)].name} has {usual}; make them "
            f"equal{f' with: {SETUP}' if what == 'torch' else ''}",
        )
        for host, version in zip(hosts, versions, strict=True)
        if version != usual
    ]


def as_sentence(words: str) -> str:
    """Returns the words with a period at their end, unless they end with the dots of a command."""
    return words if words.endswith("...") else f"{words.rstrip('.')}."


def _finding(subject: str, verdict: Verdict, host: Examined, words: str) -> Finding:
    sentence = as_sentence(f"{host.name}: {words}")
    return Finding(subject=subject, verdict=verdict, sentence=sentence, hosts=(host.name,))


def _folded(findings: Sequence[Finding]) -> list[Finding]:
    """Returns one finding where several hosts have the same, as hosts of one machine do."""
    groups: dict[tuple[Verdict, str], list[Finding]] = {}
    for finding in findings:
        words = finding.sentence.removeprefix(f"{finding.hosts[0]}: ")
        groups.setdefault((finding.verdict, words), []).append(finding)
    folded = []
    for (_, words), alike in groups.items():
        hosts = tuple(finding.hosts[0] for finding in alike)
        update = {"sentence": f"{listed(hosts)}: {words}", "hosts": hosts}
        folded.append(alike[0].model_copy(update=update))
    return folded


def _all_well(subject: str, sentence: str) -> Finding:
    return Finding(subject=subject, verdict="good", sentence=sentence)
