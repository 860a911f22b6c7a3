"""Numbers as a person reads them."""

from datetime import UTC, datetime

from dragoman.diagnosis.phrasing import percent, wall_time
from dragoman.diagnosis.phrasing import seconds as short_time
from dragoman.report.content import EvidenceFigure


def count(things: int, what: str = "") -> str:
    """1,234; with `what`: 1 step, 1,234 steps."""
    if not what:
        return f"{things:,}"
    return f"{things:,} {what if things == 1 else what + 's'}"


def size(number_of_bytes: float) -> str:
    """Decimal units, as disks and networks are sold."""
    for unit_bytes, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number_of_bytes >= unit_bytes:
            units = number_of_bytes / unit_bytes
            return f"{units:.2f} {unit}" if units < 9.995 else f"{units:,.1f} {unit}"
    return count(round(number_of_bytes), "byte")


def seconds(time_s: float) -> str:
    """Three digits for what is short, units of a clock for what is long."""
    if time_s < 59.95:
        return short_time(time_s) if time_s else "0 s"
    return wall_time(time_s)


def scientific(value: float) -> str:
    """9.88e-4"""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


def score(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def loss(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def figure_value(figure: EvidenceFigure) -> str:
    """1.8 s, 365.3 MB, 71 %, 4,524,868 lines, as set."""
    if figure.value is None:
        return "not known"
    if isinstance(figure.value, str):
        return f"{figure.value} {figure.unit}".strip()
    return quantity(figure.value, figure.unit)


def figure_interval(figure: EvidenceFigure) -> str:
    """Empty: none is known."""
    if figure.low is None or figure.high is None:
        return ""
    low, high = quantity(figure.low, figure.unit), quantity(figure.high, figure.unit)
    if figure.unit and low.endswith(f" {figure.unit}") and high.endswith(f" {figure.unit}"):
        low = low.removesuffix(f" {figure.unit}")
    return f"{low} to {high}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit, as finely as it is read."""
    sign = "-" if value < 0 else ""
    match unit:
        case "s":
            return sign + seconds(abs(value))
        case "bytes":
            return sign + size(abs(value))
        case "bytes/s":
            return f"{sign}{size(abs(value))}/s"
        case "share":
            return sign + percent(abs(value))
        case "BLEU" | "chrF":
            return f"{value:.1f} {unit}"
        case "USD" | "EUR" | "GBP" | "CHF":
            return f"{value:,.2f} {unit}"
        case "nats":
            return f"{value:.3f} nats"
        case "steps" | "lines" | "tokens" if value == 1:
            return f"1 {unit.removesuffix('s')}"
        case _:
            return f"{number(value)} {unit}".strip()


def number(value: float) -> str:
    """Whole as it is; others with four digits; the very small and very large with an exponent."""
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    if 1e-2 <= abs(value) < 1e3:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else scientific(value)
