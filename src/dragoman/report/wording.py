"""Numbers as a person reads them."""

from datetime import UTC, datetime

from dragoman.console import duration


def count(number: int, what: str = "") -> str:
    """1,234; with `what`: 1 step, 1,234 steps."""
    if not what:
        return f"{number:,}"
    return f"{number:,} {what if number == 1 else what + 's'}"


def size(number_of_bytes: float) -> str:
    """Decimal units, as disks and networks are sold."""
    for unit_bytes, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number_of_bytes >= unit_bytes:
            return f"{number_of_bytes / unit_bytes:,.1f} {unit}"
    return count(round(number_of_bytes), "byte")


def seconds(number: float) -> str:
    """Three digits for what is short, two units for what is long."""
    if number < 0.9995:
        return f"{1000 * number:.3g} ms"
    if number < 59.95:
        return f"{number:.3g} s"
    return duration(number)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def scientific(number: float) -> str:
    """9.88e-4"""
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


def score(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def loss(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
