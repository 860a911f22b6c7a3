"""A scenario: a world, and what should be said of it. Judging compares the two."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from consistency import contradictions, hard_to_read
from followable import unfollowable

from dragoman.diagnosis.findings import UNKNOWN, Figure, Finding
from dragoman.diagnosis.questions import diagnose
from dragoman.diagnosis.run.facts import read_facts
from dragoman.rundir import RunDir
from dragoman.telemetry.read.events import event_files
from scenarios.simulate import write_run
from scenarios.truth import Truth
from scenarios.world import World

KEYS = (
    "duration",
    "trained",
    "overfitting",
    "devices",
    "network",
    "learning-rate",
    "training-set",
    "checkpoint-files",
    "checkpoint-size",
    "step-time",
    "traffic",
)
VERDICTS: Mapping[str, frozenset[str]] = {
    "trained": frozenset({"yes", "not yet", "too early to say"}),
    "overfitting": frozenset({"yes", "no", "too early to say"}),
    "devices": frozenset({"fully used", "partly used", "mostly waiting"}),
    "network": frozenset(
        {"network-bound", "latency-bound", "straggler", "input-bound", "compute-bound"}
    ),
    "learning-rate": frozenset({"as set", "not as set"}),
    "traffic": frozenset({"as predicted", "more than predicted", "less than predicted"})
    | {"no traffic"},
}
"""Of the questions whose verdicts are not figures."""
USUAL: Mapping[str, str] = {
    "learning-rate": "as set",
    "training-set": "1,880 MB, 4,524,868 lines",
    "checkpoint-files": "5 files",
    "checkpoint-size": "731 MB",
}
"""Expected of every scenario that does not say otherwise."""
MAY_BE_SAID = frozenset({"quality", "more-machines"})
"""Of what nobody asked; all else that is said without a reason is a false alarm."""

Half = Literal["for setting thresholds", "for reporting"]


@dataclass(frozen=True)
class Quantity:
    """A figure that must be near the truth."""

    key: str
    figure: str
    """Its name in the evidence."""
    truth: Callable[[Truth], float]
    share: float = 0.0
    """How far it may be off, relative to the truth."""
    distance: float = 0.0
    """How far it may be off, in its unit; the larger of the two counts."""
    holds: float | None = None
    """Instead of the value, its interval is judged: it must hold the truth, and so far to each
    side of it, because what happens varies that much."""


@dataclass(frozen=True)
class Scenario:
    name: str
    truth: str
    world: World
    verdicts: Mapping[str, str | Sequence[str]]
    """Question -> the verdict, or several where each is right."""
    says: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Question, or key of what nobody asked -> words that must be in the finding's text; of such
    as stand between bars, one. What nobody asked is expected where it is named here."""
    denies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words that must not be in it, since they would be false."""
    blames: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hosts or ranks that must be named in words, since the figures list all of them; of such as
    stand between bars, one."""
    spares: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hosts that the plain sentence and the advice must not name, since nothing is wrong there."""
    alike: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hosts of which plain sentence and advice must name all or none: the record cannot tell them
    apart. Advice to train on fewer of them blames nobody."""
    quantities: Sequence[Quantity] = ()
    damage: Callable[[RunDir], None] = lambda run: None
    """What happens to the files afterwards."""
    read_after_s: float = 3600.0
    """From the last sign of the run until somebody asks."""
    may_say: frozenset[str] = frozenset()
    seeds: int = 1
    """How many times it is played, with other noise."""

    @property
    def half(self) -> Half:
        first = hashlib.sha256(self.name.encode()).digest()[0]
        return "for setting thresholds" if first % 2 == 0 else "for reporting"

    @property
    def tests(self) -> list[str]:
        keys = [*self.verdicts, *self.says, *self.blames, *self.spares, *self.denies, *self.alike]
        return list(dict.fromkeys([*keys, *(quantity.key for quantity in self.quantities)]))


@dataclass(frozen=True)
class Outcome:
    scenario: Scenario
    findings: Mapping[str, Finding]
    wrong: Sequence[str]
    """A sentence for each thing that is not as it should be."""

    def verdict(self, key: str) -> str:
        return self.findings[key].verdict if key in self.findings else "nothing said"


def play(scenario: Scenario, root: Path, seed: int = 0) -> Outcome:
    """Write the run, diagnose it, and compare."""
    world = replace(scenario.world, seed=scenario.world.seed + seed)
    truth = write_run(world, root)
    scenario.damage(RunDir(root))
    facts = read_facts(RunDir(root), read_at=truth.ended_at + scenario.read_after_s)
    diagnosis = diagnose(facts)
    attempts = len({attempt for attempt, _, _ in event_files(RunDir(root))})
    findings = {**diagnosis.answers, **diagnosis.also}
    wrong = [
        *_wrong_answers(scenario, findings, list(diagnosis.answers)),
        *_wrong_alarms(scenario, findings, attempts),
        *_wrong_words(scenario, findings),
        *_wrong_hosts(scenario, findings),
        *_wrong_quantities(scenario, findings, truth),
        *(line for key, finding in findings.items() for line in _malformed(key, finding)),
        *contradictions(findings),
        *hard_to_read(findings),
        *unfollowable(facts, findings),
    ]
    return Outcome(scenario, findings, wrong)


def text_of(finding: Finding) -> str:
    figures = (f"{f.name} {f.value} {f.unit} {f.note}" for f in finding.evidence)
    advice = (f"{advice.text}\n{advice.command}" for advice in finding.advice)
    return "\n".join([finding.verdict, finding.plain, finding.sentence, *advice, *figures])


def _wrong_answers(
    scenario: Scenario, findings: Mapping[str, Finding], order: list[str]
) -> list[str]:
    wrong = [] if tuple(order) == KEYS else [f"the answers are {', '.join(order)}"]
    expected = dict(USUAL) | dict(scenario.verdicts)
    for key in KEYS:
        if key not in findings:
            continue
        verdict = findings[key].verdict
        right = expected.get(key)
        if right is None:
            if verdict == UNKNOWN:
                wrong.append(f"{key}: {findings[key].sentence}")
        elif verdict not in ([right] if isinstance(right, str) else right):
            shown = right if isinstance(right, str) else " or ".join(right)
            wrong.append(f"{key}: {verdict}, should be {shown}: {findings[key].sentence}")
    return wrong


def _wrong_alarms(scenario: Scenario, findings: Mapping[str, Finding], attempts: int) -> list[str]:
    expected = {key for key in (*scenario.says, *scenario.blames) if key not in KEYS}
    allowed = expected | MAY_BE_SAID | scenario.may_say | set(KEYS)
    if attempts > 1:
        expected.add("faults")
        allowed.add("faults")
    missing = [f"{key}: nothing is said" for key in sorted(expected - set(findings))]
    return missing + [
        f"{key}: false alarm: {finding.sentence}"
        for key, finding in findings.items()
        if key not in allowed
    ]


def _wrong_words(scenario: Scenario, findings: Mapping[str, Finding]) -> list[str]:
    missing = [
        f"{key}: says nothing of {word}: {findings[key].sentence}"
        for key, words in scenario.says.items()
        if key in findings
        for word in words
        if not any(one in text_of(findings[key]) for one in word.split("|"))
    ]
    return missing + [
        f"{key}: says {word!r}: {findings[key].sentence}"
        for key, words in scenario.denies.items()
        if key in findings
        for word in words
        if word in text_of(findings[key])
    ]


def _wrong_hosts(scenario: Scenario, findings: Mapping[str, Finding]) -> list[str]:
    """Says who is not blamed and should be, and the other way round."""
    wrong = []
    for key, finding in findings.items():
        # Commands list hosts that have nothing to do with it: those that go on.
        short = f"{finding.plain} {finding.advice_text}"
        words = f"{finding.sentence} {short}"
        wrong += [
            f"{key}: does not name {host}: {words}"
            for host in scenario.blames.get(key, ())
            if not any(_is_named(one, words) for one in host.split("|"))
        ]
        wrong += [
            f"{key}: names {host}: {short}"
            for host in scenario.spares.get(key, ())
            if _is_named(host, short)
        ]
        blaming = " ".join(
            advice.text for advice in finding.advice if not advice.command.startswith("dragoman")
        )
        suspected = f"{finding.plain} {blaming}"
        named = [host for host in scenario.alike.get(key, ()) if _is_named(host, suspected)]
        if named and len(named) < len(scenario.alike[key]):
            wrong.append(f"{key}: names {' and '.join(named)}, which cannot be told: {suspected}")
    return wrong


def _is_named(host: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(host)}\b", words) is not None


def _wrong_quantities(
    scenario: Scenario, findings: Mapping[str, Finding], truth: Truth
) -> list[str]:
    wrong = []
    for quantity in scenario.quantities:
        if quantity.key not in findings:
            wrong.append(f"{quantity.key}: nothing is said")
            continue
        true_value = quantity.truth(truth)
        found = _figure(findings[quantity.key], quantity.figure)
        if found is None or not isinstance(found.value, (int, float)):
            wrong.append(f"{quantity.key}: has no figure {quantity.figure}")
        elif quantity.holds is not None:
            low, high = found.low, found.high
            least, most = true_value - quantity.holds, true_value + quantity.holds
            if low is None or high is None or low > least or high < most:
                wrong.append(
                    f"{quantity.key}: {quantity.figure} is between {low} and {high}, and may well "
                    f"be from {least:.6g} to {most:.6g}"
                )
        elif abs(found.value - true_value) > max(
            quantity.share * abs(true_value), quantity.distance
        ):
            wrong.append(
                f"{quantity.key}: {quantity.figure} is {found.value:.6g}, in truth {true_value:.6g}"
            )
    return wrong


def _figure(finding: Finding, name: str) -> Figure | None:
    return next((figure for figure in finding.evidence if figure.name == name), None)


def _malformed(key: str, finding: Finding) -> list[str]:
    """What no finding may be, whatever the run."""
    wrong = []
    if key in VERDICTS and finding.verdict not in VERDICTS[key] | {UNKNOWN}:
        wrong.append(f"{key}: {finding.verdict} is none of its verdicts")
    if not finding.sentence.strip().endswith("."):
        wrong.append(f"{key}: not a sentence: {finding.sentence!r}")
    says_nothing = finding.verdict in (UNKNOWN, "too early to say")
    if finding.confidence == "none" and not says_nothing:
        wrong.append(f"{key}: {finding.verdict} without any confidence")
    if finding.confidence != "none" and finding.verdict == UNKNOWN:
        wrong.append(f"{key}: confidence {finding.confidence} in nothing")
    if re.search(r"\b(nan|inf|Error|Traceback)\b", finding.sentence + finding.advice_text):
        wrong.append(f"{key}: not for people: {finding.sentence} {finding.advice_text}")
    for figure in finding.evidence:
        for value in (figure.value, figure.low, figure.high):
            if isinstance(value, float) and not math.isfinite(value):
                wrong.append(f"{key}: {figure.name} is {value}")
    return wrong
