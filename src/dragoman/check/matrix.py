"""The figures of a check as texts, for the terminal and the page alike. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.check.ports import SLOW, UNFIT, Rates, hosts_of
from dragoman.check.result import CheckResult, Finding, HostFacts, Verdict
from dragoman.diagnosis.phrasing import rate, seconds, size

MOST_HOSTS = 16
"""In a matrix; of more hosts the slowest ways are listed."""
MOST_WAYS = 20


class Cell(NamedTuple):
    text: str
    share: float | None
    """Of the fastest way; None: not measured."""

    @property
    def mark(self) -> str:
        """Tells without colors how slow it is."""
        if self.share is None or self.share >= SLOW:
            return ""
        return "!" if self.share >= UNFIT else "!!"


class Matrix(NamedTuple):
    unit: str
    hosts: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    """Row: sender; column: receiver."""


def matrix_of(rates: Rates, hosts: Sequence[str], digits: int = 3) -> Matrix:
    """Returns the rates in one unit, that of the fastest way, in the order of the host list."""
    best = max(rates.values())
    unit, bits = ("Gbit/s", 1e9) if 8 * best >= 0.9995e9 else ("Mbit/s", 1e6)
    names = [name for name in hosts if name in hosts_of(rates)]

    def cell(sender: str, receiver: str) -> Cell:
        if sender == receiver:
            return Cell("-", None)
        found = rates.get((sender, receiver))
        if found is None:
            return Cell("?", None)
        return Cell(_short(8 * found / bits, digits), found / best)

    return Matrix(unit, names, [[cell(sender, receiver) for receiver in names] for sender in names])


def slowest_ways(rates: Rates) -> list[tuple[str, str, float]]:
    ways = [(sender, receiver, rate) for (sender, receiver), rate in rates.items()]
    return sorted(ways, key=lambda way: way[2])[:MOST_WAYS]


HOST_HEADER = ("host", "address", "workers", "device", "GEMM", "disk", "free", "clock")


def host_row(host: HostFacts) -> tuple[str, ...]:
    return (
        host.name,
        host.address,
        str(host.workers),
        _plain_device(host.device),
        "-" if host.gemm_flops_per_s is None else flops(host.gemm_flops_per_s),
        "-" if host.disk_bytes_per_s is None else rate(host.disk_bytes_per_s),
        size(host.free_disk_bytes),
        f"{'-' if host.clock_offset_s < 0 else '+'}{seconds(abs(host.clock_offset_s))}",
    )


def flops(flops_per_s: float) -> str:
    if flops_per_s >= 1e12:
        return f"{flops_per_s / 1e12:.3g} TFLOP/s"
    return f"{flops_per_s / 1e9:.3g} GFLOP/s"


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Returns what is unfit first, and what is well last."""
    order: Sequence[Verdict] = ("unfit", "warning", "good")
    return sorted(findings, key=lambda finding: order.index(finding.verdict))


def summary_of(result: CheckResult) -> str:
    """Returns in a few words how it went."""
    counts = {
        word: sum(finding.verdict == verdict for finding in result.findings)
        for verdict, word in (("unfit", "unfit"), ("warning", "warning(s)"))
    }
    wrong = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    what = f" for {result.recipe}" if result.recipe else ""
    hosts = "1 host" if len(result.hosts) == 1 else f"{len(result.hosts)} hosts"
    return f"{hosts} checked{what} in {result.seconds:.0f} s: {wrong or 'all is well'}"


def _plain_device(name: str) -> str:
    for noise in ("(R)", "(TM)", "NVIDIA ", " Processor", " CPU"):
        name = name.replace(noise, "")
    return name.split(" @ ")[0].strip()


def _short(number: float, digits: int) -> str:
    """Returns at most `digits` digits and a point: 941, 94.1, 9.41, .941, or 941, 94, 9.4, .94."""
    whole = len(str(int(number)))
    if number >= 10 ** (digits - 1) - 0.5:
        return f"{number:.0f}"
    if number < 1:
        return f"{number:.{digits}f}".removeprefix("0")
    return f"{number:.{digits - whole}f}" if digits > whole else f"{number:.0f}"
