"""How figures become words, in findings, reports and comparisons."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from dragoman.console import duration


def seconds(number: float) -> str:
    """Returns three digits for a short time, and the units of a clock for a long one."""
    if number == 0:
        return "0 s"
    if number < 0.0009995:
        return f"{1e6 * number:.3g} µs"
    if number < 0.9995:
        return f"{1000 * number:.3g} ms"
    return f"{number:.3g} s" if number < 59.95 else wall_time(number)


def wall_time(number: float) -> str:
    """1 d 4 h 21 min, 3 h 5 min, 12 min 5 s, 42 s."""
    whole = max(0, round(number))
    if whole < 3600:
        return duration(whole)
    minutes = round(whole / 60)
    units = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{count} {unit}" for count, unit in units if count)


def savings(saved_s: float, cost: float | None = None, currency: str = "") -> str:
    """saves about 3 h 5 min and 37.00 USD; `cost` None: no price is known."""
    paid = "" if cost is None else f" and {money(cost, currency)}"
    return f"saves about {wall_time(saved_s)}{paid}"


def instant(at: float) -> str:
    """2026-11-16 14:05 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def size(number_of_bytes: float) -> str:
    """Returns three digits in decimal units, as disks and networks are sold."""
    whole = round(number_of_bytes)
    if whole < 1000:
        return count(whole, "byte")
    return _three_digits(number_of_bytes / 1000, ("kB", "MB", "GB", "TB"))


def rate(bytes_per_s: float) -> str:
    """12.5 MB/s."""
    return f"{size(bytes_per_s)}/s"


def bit_rate(bytes_per_s: float) -> str:
    """100 Mbit/s, as links are sold."""
    return _three_digits(8 * bytes_per_s / 1e6, ("Mbit/s", "Gbit/s", "Tbit/s"))


def _three_digits(number: float, units: Sequence[str]) -> str:
    """The first unit is that of the number, each further one a thousand times as large."""
    for unit in units[:-1]:
        if number < 999.5:  # from here on three digits would be rounded to a thousand
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} {units[-1]}" if number < 999.5 else f"{number:,.0f} {units[-1]}"


def megabytes(number_of_bytes: float) -> str:
    """1,880 MB, 22.8 MB, 0.34 MB: always the same unit, for what is asked for in megabytes."""
    number = number_of_bytes / 1e6
    digits = 0 if number >= 99.5 else 1 if number >= 9.95 else 2
    return f"{number:,.{digits}f} MB"


def percent(share: float) -> str:
    """71 %, 2.5 %, under 0.1 %."""
    if 0 < abs(share) < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:,.0f} %"


def count(number: int, what: str = "") -> str:
    """1,234; with `what`: 1 step, 1,234 steps."""
    if not what:
        return f"{number:,}"
    return f"{number:,} {what if number == 1 else what + 's'}"


def there_are(number: int, what: str) -> str:
    """there is 1 step, there are 1,234 steps."""
    return f"there {'is' if number == 1 else 'are'} {count(number, what)}"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence_of(words: str) -> str:
    """Returns the words with a capital in front and a period behind; nothing of nothing."""
    return f"{words[0].upper()}{words[1:]}." if words else ""


def plain_name(words: str) -> str:
    """Returns words in which ranks are called workers, as in a plain sentence."""
    return re.sub(r"\brank(s?)\b", r"worker\1", words)


def scientific(number: float) -> str:
    """9.88e-4."""
    if number == 0:
        return "0"
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


def score(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def loss(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def money(value: float, currency: str) -> str:
    """12.50 USD, 3,120 USD, 0.00042 BTC."""
    if 0 < abs(value) < 0.0995:
        return f"{value:.2g} {currency}"
    return f"{value:,.2f} {currency}" if abs(value) < 999.995 else f"{value:,.0f} {currency}"


def quantity(value: float, unit: str) -> str:
    """Returns a number with its unit, one of those that `Figure` lists, with few digits."""
    sign = "-" if value < 0 else ""
    match unit:
        case "s":
            return sign + seconds(abs(value))
        case "bytes":
            return sign + size(abs(value))
        case "bytes/s":
            return sign + rate(abs(value))
        case "share":
            return sign + percent(abs(value))
        case "BLEU" | "chrF":
            return f"{value:.1f} {unit}"
        case "USD" | "EUR" | "GBP" | "CHF":
            return money(value, unit)
        case "nats":
            return f"{value:.3f} nats"
        case "steps" | "lines" | "tokens" if value == 1:
            return f"1 {unit.removesuffix('s')}"
        case _:
            return f"{_number(value)} {unit}".strip()


def _number(value: float) -> str:
    """Whole as it is; others with four digits; the very small and very large with an exponent."""
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    if 1e-2 <= abs(value) < 1e3:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else scientific(value)
