"""Do the answers of one report agree with each other? Findings come in, contradictions go out.

Pure, and without any knowledge of the run: a contradiction is one whatever the truth is.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from dragoman.diagnosis.findings import UNKNOWN, Finding

Findings = Mapping[str, Finding]
"""By the keys of their questions."""

# The same quantity under names that differ: (question, figure).
SAME: Sequence[Sequence[tuple[str, str]]] = (
    (("step-time", "mean"), ("step-time", "mean step"), ("network", "mean step")),
    (("stragglers", "waiting for the slowest rank"), ("network", "waiting for stragglers")),
    (("stragglers", "share of the step"), ("network", "waiting for stragglers share")),
)
# What a sentence says of a quantity that another one may mention too: the first group is its name.
MENTIONS = (
    re.compile(r"(mean step) (?:of|is|was|took|takes) (\S+ (?:µs|ms|s|min)\b)"),
    re.compile(r"(computing(?:, [a-z]+ ranks?)?) (?:takes|took|is|was) (\S+ %)"),
    re.compile(
        r"(validation loss)(?:,| is(?: still at)?| has come to rest at| rests at) (\S+ nats)"
    ),
)
WAITING = {"network-bound", "latency-bound", "straggler", "input-bound"}
TRAFFIC_DECIDES = re.compile(
    r"traffic sets the time|traffic (?:is what )?makes (?:the )?steps long"
)
TRAFFIC_IS_INNOCENT = re.compile(r"not the traffic|traffic is not")
TRAIN_ON = re.compile(
    r"\btrain(?:ing)? (?:on|longer|further|anew with more)\b|(?<!not )(?<!no )\bmore steps\b"
    r"|\bcontinue training\b"
    r"|\btrain (\S+)/config\.toml --run \1 .*training\.(?:steps|epochs|hours)=",
    re.IGNORECASE,
)
SETTING = re.compile(r"(?:^|--set )([a-z_]+(?:\.[a-z_]+)+) ?= ?(\S+)", re.MULTILINE)
LEARNING = ("trained", "overfitting", "quality")
MOST_WORDS = 40
JARGON = re.compile(
    r"\b(?:MFU|exposed|nats?|all-reduce|ring|collective|FLOPs?|NCCL|gloo|rank|straggler|Noam"
    r"|label smoothing|micro-batch(?:es)?|correlat\w+|percentile|logarithm\w*|perplexity)\b"
)
"""That a student in a first course does not know."""


def contradictions(findings: Findings) -> list[str]:
    """Returns a sentence for each pair of statements of which one must be wrong."""
    return [
        *_one_name_two_values(findings),
        *_one_quantity_two_values(findings),
        *_two_mentions(findings),
        *_saves_too_much(findings),
        *_two_settings(findings),
        *(what for what, is_so in RULES.items() if is_so(findings)),
    ]


def hard_to_read(findings: Findings) -> list[str]:
    """Returns a sentence for each answer whose plain sentence is missing or is not plain."""
    return [
        f"{key}: {problem}: {finding.plain}"
        for key, finding in findings.items()
        if finding.verdict != UNKNOWN  # then its only sentence says why
        for problem in _hard_to_read(finding.plain)
    ]


def _hard_to_read(plain: str) -> Iterator[str]:
    if not plain:
        yield "has no plain sentence"
    elif not plain.endswith((".", "!", "?")) or re.search(r"[.!?] [A-Z]", plain):
        yield "is not one sentence"
    if len(plain.split()) > MOST_WORDS:
        yield f"has {len(plain.split())} words"
    if found := JARGON.search(plain):
        yield f"uses the word {found[0]}"


def _one_name_two_values(findings: Findings) -> Iterator[str]:
    named = defaultdict(list)
    for key, finding in findings.items():
        for figure in finding.evidence:
            named[figure.name].append((key, figure.value, figure.unit))
    for name, values in named.items():
        for (key, value, unit), (other_key, other, other_unit) in combinations(values, 2):
            if key != other_key and (unit != other_unit or not _is_same(value, other)):
                yield f"{name} is {value} {unit} in {key} and {other} {other_unit} in {other_key}"


def _one_quantity_two_values(findings: Findings) -> Iterator[str]:
    for names in SAME:
        found = [(key, name, _figure(findings, key, name)) for key, name in names]
        known = [(key, name, value) for key, name, value in found if value is not None]
        for (key, name, value), (other_key, other_name, other) in combinations(known, 2):
            if not _is_same(value, other):
                yield f"{key}: {name} is {value}, and {other_key}: {other_name} is {other}"


def _two_mentions(findings: Findings) -> Iterator[str]:
    mentioned: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, finding in findings.items():
        for pattern in MENTIONS:
            for name, value in pattern.findall(finding.sentence):
                mentioned[name][key].add(value.rstrip(".,;:"))
    for name, by_key in mentioned.items():
        for (key, values), (other_key, others) in combinations(by_key.items(), 2):
            # An answer may tell of several phases, of which another one tells only the last.
            if not values & others:
                said = f"{', '.join(sorted(values))} in {key}"
                yield f"{name} is {said} and {', '.join(sorted(others))} in {other_key}"


def _two_settings(findings: Findings) -> Iterator[str]:
    """Of one key, several values in one answer are alternatives; in two answers, who is right?"""
    advised: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, finding in findings.items():
        for advice in finding.advice:
            for setting, value in SETTING.findall(advice.command):
                advised[setting][key].add(value)
    for setting, by_key in advised.items():
        for (key, values), (other_key, others) in combinations(by_key.items(), 2):
            if not values & others:
                said = f"{', '.join(sorted(values))} in {key}"
                yield f"{setting} should be {said} and {', '.join(sorted(others))} in {other_key}"


def _figure(findings: Findings, key: str, name: str) -> float | None:
    figures = findings[key].evidence if key in findings else ()
    values = [figure.value for figure in figures if figure.name == name]
    return values[0] if values and isinstance(values[0], int | float) else None


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
    return value == other


def _verdict(findings: Findings, key: str) -> str:
    return findings[key].verdict if key in findings else ""


def _text(findings: Findings, key: str) -> str:
    if key not in findings:
        return ""
    finding = findings[key]
    advice = (f"{each.text} {each.command}" for each in finding.advice)
    return "\n".join([finding.plain, finding.sentence, *advice])


def _advises_to_train_on(findings: Findings) -> bool:
    advice = [each for key in LEARNING if key in findings for each in findings[key].advice]
    return any(TRAIN_ON.search(f"{each.text} {each.command}") for each in advice)


def _share_of_step(findings: Findings, part: str) -> float:
    return _figure(findings, "network", f"{part} share") or 0.0


def _devices_wait(findings: Findings) -> bool:
    shares = [
        figure.value
        for figure in findings["devices"].evidence
        if figure.name.startswith("computing") and figure.unit == "share"
    ]
    return any(isinstance(share, float) and share < 0.5 for share in shares)


def _saves_too_much(findings: Findings) -> Iterator[str]:
    wall_s = _figure(findings, "duration", "wall time") or math.inf
    for key, finding in findings.items():
        saved_s = max((each.saves_s or 0.0 for each in finding.advice), default=0.0)
        if saved_s > wall_s:
            yield f"{key}: its advice would save {saved_s / wall_s:.0%} of the run"


def _parts_exceed_the_step(findings: Findings) -> bool:
    figures = findings["network"].evidence if "network" in findings else ()
    shares = [
        figure.value
        for figure in figures
        if figure.unit == "share" and figure.name.endswith(" share") and "," not in figure.name
    ]
    return sum(share for share in shares if isinstance(share, int | float)) > 1.02


RULES: Mapping[str, Callable[[Findings], bool]] = {
    "a straggler holds up the steps (network), and the traffic sets their time (traffic)": (
        lambda found: (
            _verdict(found, "network") in ("straggler", "input-bound", "compute-bound")
            and TRAFFIC_DECIDES.search(_text(found, "traffic")) is not None
        )
    ),
    "the steps wait for the network (network), and it is not the traffic (traffic)": (
        lambda found: (
            _verdict(found, "network") == "network-bound"
            and TRAFFIC_IS_INNOCENT.search(_text(found, "traffic")) is not None
        )
    ),
    "the model is fully trained, and should be trained on": (
        lambda found: _verdict(found, "trained") == "yes" and _advises_to_train_on(found)
    ),
    "the devices are fully used (devices), and mostly wait (its figures)": (
        lambda found: _verdict(found, "devices") == "fully used" and _devices_wait(found)
    ),
    "the devices are fully used (devices), and wait for something (network)": (
        lambda found: (
            _verdict(found, "devices") == "fully used" and _verdict(found, "network") in WAITING
        )
    ),
    "others wait much for a slow host (stragglers), and computing is all (network)": (
        lambda found: (
            "stragglers" in found
            and _verdict(found, "network") == "compute-bound"
            and _share_of_step(found, "waiting for stragglers") > 0.3
        )
    ),
    "two answers name other slow hosts (network, stragglers)": (
        lambda found: (
            _verdict(found, "network") == "straggler"
            and "stragglers" in found
            and not _verdict(found, "stragglers").startswith(("all but ", "several "))
            and not any(
                host in _text(found, "network")
                for host in re.split(r", | and ", _verdict(found, "stragglers"))
            )
        )
    ),
    "the parts of a step are more than the step (network)": _parts_exceed_the_step,
}
