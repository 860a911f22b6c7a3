"""A cluster in words: `4 nodes, 1gbit, 14 TFLOP/s` comes in, its figures go out. Pure."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.config import Range
from dragoman.errors import UserError

EXAMPLE = '"4 nodes, 1gbit, 14 TFLOP/s"'
_NUMBER = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
_TIMES_S = {"us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES = {"mb": 1e6, "gb": 1e9, "tb": 1e12, "mib": 2.0**20, "gib": 2.0**30}
_SPEEDS = {"m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


@dataclass(frozen=True)
class Assumption:
    text: str
    nodes: int
    workers: int = 1
    """Of each node."""
    send_bits_per_s: float | None = None
    """As the port is sold, headers included; None: there is but one node."""
    receive_bits_per_s: float | None = None
    latency_s: float | None = None
    """Of a message from node to node."""
    flops_per_s: float | None = None
    """Of one device, as it is sold or measured."""
    computing_s: float | None = None
    """Of one step, instead of `flops_per_s`."""
    utilization: float | None = None
    """Share of `flops_per_s` that training reaches; None: what is usual."""
    memory_bytes: float | None = None
    """Of one device."""
    price_per_hour: float | None = None
    """Of one node."""
    currency: str | None = None
    """Of the price; None: it was given as a number alone."""
    is_cpu: bool = False


@dataclass(frozen=True)
class _Form:
    """One way to write a figure, and what it may be."""

    pattern: str
    key: str
    read: Callable[[re.Match[str]], float]
    range: Range
    in_words: str


def _scaled(units: Mapping[str, float]) -> Callable[[re.Match[str]], float]:
    return lambda found: float(found[1]) * units[found[2].lower()]


def _plain(found: re.Match[str]) -> float:
    return float(found[1])


_A_NODE = r"(?: ?(?:per|a|each|on each|in each)(?: (?:node|host|machine))?)?"
_FORMS = (
    _Form(rf"{_NUMBER} ?(?:nodes?|hosts?|machines?)", "nodes", _plain, Range(1, 10_000), "nodes"),
    _Form(
        rf"{_NUMBER} ?(?:workers?|gpus?|devices?){_A_NODE}",
        *("workers", _plain, Range(1, 1024), "workers a node"),
    ),
    _Form(
        rf"(?:latency )?{_NUMBER} ?(us|μs|ms)(?: latency)?",
        *("latency_s", _scaled(_TIMES_S), Range(0, 10), "seconds of latency"),
    ),
    _Form(
        rf"{_NUMBER} ?(ms|s)(?: of)? (?:computing|compute|a step|per step)",
        *("computing_s", _scaled(_TIMES_S), Range(1e-6, 86_400), "seconds of computing"),
    ),
    _Form(
        rf"{_NUMBER} ?(s)",
        *("computing_s", _scaled(_TIMES_S), Range(1e-6, 86_400), "seconds of computing"),
    ),
    _Form(
        rf"{_NUMBER} ?([mgtp])flop(?:s|/s|s/s)",
        *("flops_per_s", _scaled(_SPEEDS), Range(1e8, 1e17), "FLOP/s"),
    ),
    _Form(
        rf"{_NUMBER} ?%(?: (?:mfu|utilization|of peak))?",
        *("utilization", lambda found: float(found[1]) / 100, Range(0.001, 1), "shares of peak"),
    ),
    _Form(
        rf"{_NUMBER} ?(mb|gb|tb|mib|gib)(?: (?:of )?memory)?",
        *("memory_bytes", _scaled(_SIZES), Range(1e8, 1e14), "bytes of memory"),
    ),
    _Form(
        rf"[$€]?{_NUMBER} ?(?:[$€]|usd|eur)?(?: ?/ ?h| ?/ ?hour| per hour| an hour)",
        *("price_per_hour", _plain, Range(0, 100_000), "prices of a node and hour"),
    ),
)
_CURRENCIES = {"$": "USD", "usd": "USD", "€": "EUR", "eur": "EUR"}
_BITS_PER_S = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATES = Range(1e4, 1e13)
UNLIMITED = 1e13
"""Bits a second of a link that nobody waits for."""
_RATE = re.compile(
    rf"(?:unlimited|none|{_NUMBER} ?([kmgt])(?:bit(?: ?/ ?s|ps)?|bps))(?: (send|receive|up|down))?"
)
_WHAT = {
    "send_bits_per_s": "the rate of sending",
    "receive_bits_per_s": "the rate of receiving",
    "latency_s": "the latency",
    "flops_per_s": "the speed of a device",
    "computing_s": "the computing of a step",
    "utilization": "the share of a device's speed",
    "memory_bytes": "the memory of a device",
    "price_per_hour": "the price of a node",
    "is_cpu": "the kind of device",
}


def parse_assumption(text: str) -> Assumption:
    """Reads figures in any order, separated by commas.

    One sentence names what cannot be read, is absurd, stands twice or is missing.
    """
    found: dict[str, Any] = {}
    for part in text.split(","):
        # Both letters that look like a µ become one, and wide digits plain ones.
        words = " ".join(unicodedata.normalize("NFKC", part).lower().split())
        if not words:
            continue
        for key, value in _read(words, part.strip()).items():
            if key in found:
                raise UserError(
                    f"--assume: {part.strip()!r} says for a second time what "
                    f"{_WHAT.get(key, f'the number of {key}')} is; leave one of them out"
                )
            found[key] = value
    if "nodes" not in found:
        raise UserError(f"--assume {text!r} has no number of nodes; write it as in {EXAMPLE}")
    for key in ("nodes", "workers"):
        if found.get(key, 1) != int(found.get(key, 1)):
            raise UserError(f"--assume: {found[key]:g} {key} are no whole number; round it")
    nodes = int(found.pop("nodes"))
    workers = int(found.pop("workers", 1))
    one_way = found.get("send_bits_per_s") or found.get("receive_bits_per_s")
    if nodes > 1 and not one_way:
        raise UserError(
            f"--assume {text!r} has {nodes} nodes and no rate of the link between them; add one, "
            "such as 1gbit"
        )
    if one_way:
        found = {"send_bits_per_s": one_way, "receive_bits_per_s": one_way} | found
    if "flops_per_s" not in found and "computing_s" not in found:
        raise UserError(
            f"--assume {text!r} does not say how fast nodes compute; add what one device does, "
            "such as 14 TFLOP/s, or how long a step computes, such as 1.8 s"
        )
    if "computing_s" in found and ("flops_per_s" in found or "utilization" in found):
        raise UserError(
            f"--assume {text!r} says how long a step computes and how fast a device is, of which "
            "the plan needs one; leave the other out"
        )
    return Assumption(text=text, nodes=nodes, workers=workers, **found)


def _read(words: str, as_written: str) -> dict[str, Any]:
    if words in ("cpu", "cpus", "gpu", "gpus"):
        return {"is_cpu": words.startswith("cpu")}
    if found := _RATE.fullmatch(words):
        try:
            bits, way = _bits_per_s(found, as_written), found[3]
        except UserError as error:
            raise UserError(f"--assume: {error}") from None
        keys = {
            *(["send_bits_per_s"] if way in ("send", "up", None) else []),
            *(["receive_bits_per_s"] if way in ("receive", "down", None) else []),
        }
        return dict.fromkeys(keys, bits)
    for form in _FORMS:
        if found := re.fullmatch(form.pattern, words):
            value = form.read(found)
            if not form.range.low <= value <= form.range.high:
                raise UserError(
                    f"--assume: {as_written!r} is absurd; {form.in_words} are "
                    f"{form.range.low:g} to {form.range.high:g}"
                )
            return {form.key: value} | _currency(form.key, words)
    if words.isdecimal():
        raise UserError(
            f"--assume: {as_written!r} has no unit; commas separate figures, and decimals have a "
            f"point, as in 0.53/h"
        )
    raise UserError(
        f"--assume: {as_written!r} cannot be read; write nodes, workers, a rate (1gbit), a latency "
        "(0.2 ms), a speed (14 TFLOP/s), memory (16 GB), a price (0.5/h) or cpu, separated by "
        f"commas, as in {EXAMPLE}"
    )


def parse_link_rate(text: str) -> float:
    """Returns bits a second: 100mbit, 400 Gbit/s or unlimited."""
    words = " ".join(text.lower().split())
    found = _RATE.fullmatch(words)
    if found and not found[3]:
        return _bits_per_s(found, text)
    raise UserError(
        f"{text!r} is not a rate; write a number with kbit, mbit, gbit or tbit (100mbit), or none"
    )


def _bits_per_s(found: re.Match[str], as_written: str) -> float:
    if not found[1]:
        return UNLIMITED
    bits = float(found[1]) * _BITS_PER_S[found[2]]
    if not _RATES.low <= bits <= _RATES.high:
        raise UserError(f"{as_written!r} is absurd; rates are 10kbit to 10tbit, or unlimited")
    return bits


def _currency(key: str, words: str) -> dict[str, str]:
    if key != "price_per_hour":
        return {}
    return next(
        ({"currency": name} for sign, name in _CURRENCIES.items() if sign in words),
        dict[str, str](),
    )
