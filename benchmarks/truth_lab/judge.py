"""Judges the report of a world's run by what was injected and by what the raw events show."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from truth_lab.commands_work import why_not_followable
from truth_lab.raw_events import RawShares, RawStep, read_steps, shares_over
from truth_lab.world import World

SHARE_TOLERANCE = 0.05
CLEAR_SHARE = 0.25
"""What was injected takes at least so much of the time, and more than anything else."""
QUIET_SHARE = 0.18
"""Nothing takes more where nothing was injected."""
LATE_SHARE = 0.05
"""A host that the others wait for so long, in truth, is not accused wrongly."""
STEP_TOLERANCE = 5
STEP_TIME_TOLERANCE = 0.03
SLOWER = 1.1
"""More hosts are slower than fewer were, if a step takes so much longer."""


@dataclass(frozen=True)
class Said:
    """An answer of report.json."""

    key: str
    verdict: str
    words: str
    figures: dict[str, Any]
    advice: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Judgment:
    world: World
    hosts: Sequence[str]
    raw: RawShares
    said: dict[str, Said]
    injection: str
    """What the injection alone says, beside what was measured."""
    truths_agree: bool
    faults: Sequence[str]
    """Each begins with its kind: verdict, host, share, since, advice, contradiction, words."""

    @property
    def is_right_in_the_main(self) -> bool:
        return not any(fault.startswith(("verdict", "host")) for fault in self.faults)

    @property
    def in_short(self) -> str:
        if not self.truths_agree:
            return f"the machine disturbed it: {self.injection}"
        return "; ".join(self.faults) or "right"

    @property
    def cells(self) -> list[str]:
        network = self.said["network"]
        hosts = ", ".join(self.world.culprits) or "none"
        named = ", ".join(named_hosts(network, self.hosts)) or "none"
        return [
            self.world.name,
            self.injection,
            network.verdict,
            f"{hosts} / {named}",
            *(
                f"{100 * true:.0f} / {_percent(network.figures.get(name))}"
                for true, name in (
                    (self.raw.network, NETWORK_SHARE),
                    (self.raw.straggling, STRAGGLING_SHARE),
                )
            ),
            self.in_short,
        ]


FOREIGN = re.compile(r"[Oo]ther programs")
NETWORK_SHARE = "exposed network share"
STRAGGLING_SHARE = "waiting for stragglers share"


def judge(world: World, folder: Path) -> Judgment:
    steps = read_steps(folder / "run")
    done = json.loads((folder / "truth.json").read_text())
    world, changes = world.as_run(done["world"]), done["changes"]
    report = json.loads((folder / "run" / "report.json").read_text())
    page = (folder / "run" / "report.md").read_text(encoding="utf-8")
    said = {answer["key"]: _said(answer) for answer in report["answers"] + report["also"]}
    hosts = sorted({host for step in steps for host in step.hosts})
    raw = shares_over(steps)
    injection, agrees = injected(world, steps, changes, raw)
    faults = [
        *_verdict_faults(world, said),
        *_host_faults(world, said, raw, hosts),
        *_share_faults(said, raw),
        *_duration_faults(said, raw, report["attempts"], len(steps)),
        *_since_faults(world, said, steps, changes),
        *_data_faults(world, said),
        *_foreign_faults(world, said),
        *_ring_faults(steps, said, page),
        *_advice_faults(said, folder / "run", hosts),
        *_contradictions(said, raw),
    ]
    return Judgment(world, hosts, raw, said, injection, agrees, faults)


def _said(answer: dict[str, Any]) -> Said:
    advice = answer["advice"]
    texts = [answer["plain"], answer["sentence"], *(one["text"] for one in advice)]
    figures = {figure["name"]: figure["value"] for figure in answer["evidence"]}
    return Said(answer["key"], answer["verdict"], " ".join(filter(None, texts)), figures, advice)


# What the injection says, and whether the raw events agree.


def injected(
    world: World, steps: list[RawStep], changes: list[dict[str, Any]], raw: RawShares
) -> tuple[str, bool]:
    held = held_steps(world, steps, changes) or steps
    held_raw = shares_over(held)
    shares = {"network": raw.network, "straggling": raw.straggling, "data": raw.data}
    if world.cause == "none":
        return "nothing takes long", max(shares.values()) < QUIET_SHARE
    largest = max(shares, key=lambda name: shares[name])
    agrees = largest == world.cause and shares[world.cause] >= CLEAR_SHARE
    words = []
    if world.caps and world.cause == "network":
        least_s = wire_s(world, held)
        measured_s = fmean(step.network_s for step in held)
        words.append(f"network at least {least_s:.2f} s, measured {measured_s:.2f} s")
        agrees = agrees and 0.8 * least_s - _overlap_s(held) <= measured_s <= 1.7 * least_s + 0.1
    for slow in world.slow_devices:
        extra_s = world.device_s * 2 / len(held[0].hosts) * (slow.factor - 1)
        words.append(f"{', '.join(slow.hosts)} {extra_s:.2f} s behind")
        if world.cause == "straggling":
            measured_s = held_raw.straggling * held_raw.step_s
            words[-1] += f", measured {measured_s:.2f} s"
            agrees = agrees and 0.7 * extra_s <= measured_s <= 1.5 * extra_s + 0.1
    for late in world.slow_data:
        words.append(f"data takes {late.seconds:.2f} s, a step {raw.step_s:.2f} s")
        agrees = agrees and raw.step_s >= 0.9 * late.seconds
    for host in (*world.quotas, *world.busy_loops):
        own = fmean(step.computing_s[host] for step in steps)
        others = fmean(
            seconds
            for step in steps
            for other, seconds in step.computing_s.items()
            if other != host
        )
        words.append(f"{host} computes {own / others:.1f} times as long")
        agrees = agrees and own / others >= 1.5
    return "; ".join(words), agrees


def wire_s(world: World, steps: list[RawStep]) -> float:
    """Returns how long a ring's bytes take at the rate of the slowest cap, in the mean."""
    bits = min(_bits(cap.rate) for cap in world.caps)
    return fmean(8 * RING_BYTES * 2 * (n - 1) / n / bits for n in (len(s.hosts) for s in steps))


RING_BYTES = 3.74e6 * 1538 / 1448
"""Gradients of the model of all worlds, in packets."""


def _overlap_s(steps: list[RawStep]) -> float:
    return fmean(step.backward_s for step in steps)


def _bits(rate: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\w)bit", rate).groups()  # type: ignore[union-attr]
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit]


def held_steps(world: World, steps: list[RawStep], changes: list[dict[str, Any]]) -> list[RawStep]:
    """Returns the steps all through which what was injected holds."""
    held = steps
    for slow in world.slow_devices:
        last = slow.until_step or math.inf
        held = [step for step in held if slow.from_step <= step.step <= last]
    if world.caps or world.slows_processors:
        spans = spans_of("caps" if world.caps else "processors", changes)
        held = [
            step
            for step in held
            if any(begin <= step.began_at and step.ended_at <= end for begin, end in spans)
        ]
    return held


def spans_of(what: str, changes: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Returns when caps or slow processors held: begin and end."""
    spans: list[tuple[float, float]] = []
    for change in (change for change in changes if change.get("what", "caps") == what):
        if change["holds"]:
            spans.append((change["wall_at"], math.inf))
        elif spans:
            spans[-1] = (spans[-1][0], change["wall_at"])
    return spans


# What is wrong with the report.


def _verdict_faults(world: World, said: dict[str, Said]) -> Iterator[str]:
    verdict = said["network"].verdict
    if verdict not in world.verdicts:
        yield f"verdict: {verdict} and not {' or '.join(world.verdicts)}"


def named_hosts(answer: Said, hosts: Sequence[str]) -> list[str]:
    """Returns the hosts that an answer blames, but for the other programs on them.

    Hosts of a lab have the same processors, so what others do there is true of all of them.
    """
    sentences = re.split(r"(?<=[.:;]) ", answer.words)
    words = " ".join(sentence for sentence in sentences if not FOREIGN.search(sentence))
    return [host for host in hosts if blames(words, host)]


def blames(words: str, host: str) -> bool:
    several = rf"(?:node\d+(?:, | and ))*{host}\b"
    patterns = [
        rf"replac\w+ {several}",
        rf"(?:wait|waits|waiting|waited)\b[^.;:]{{0,60}}? for {several}",
        rf"{several}(?:(?:, | and )node\d+)* (?:is|are) (?:slow|late|the last|always|throttled)",
        rf"(?:runs|run|uses \S+ \S+) (?:on|of) {several}",
        rf"(?:link|port|connection|network|way|data) (?:of|to|from|behind|for) {several}",
        rf"{several}'s? (?:link|port|connection|network|device|processor)",
        rf"{several} (?:is|are) (?:capped|limited|held)",
        rf"from node\d+ to {host}\b",
        rf"(?:[Ww]hat|where) {several} (?:sends?|receives?)",
    ]
    return any(re.search(pattern, words) for pattern in patterns)


def _host_faults(
    world: World, said: dict[str, Said], raw: RawShares, hosts: Sequence[str]
) -> Iterator[str]:
    network = said["network"]
    named = named_hosts(network, hosts)
    capped = {host for cap in world.caps for host in cap.hosts}
    missing = [host for host in world.culprits if host not in named]
    if missing and not (world.may_name_nobody and not named):
        yield f"host: {', '.join(missing)} not named as the cause"
    for key, answer in said.items():
        for host in named_hosts(answer, hosts):
            is_late = raw.for_host.get(host, 0.0) >= LATE_SHARE
            if host not in (*world.culprits, *world.allowed, *capped) and not is_late:
                yield f"host: {key} blames {host}, for which the others wait " + (
                    f"{100 * raw.for_host.get(host, 0.0):.0f} % of the time"
                )


def _share_faults(said: dict[str, Said], raw: RawShares) -> Iterator[str]:
    figures = said["network"].figures
    step_s = figures.get("mean step")
    if step_s is None or abs(step_s / raw.step_s - 1) > STEP_TIME_TOLERANCE:
        yield f"share: mean step {step_s} s and not {raw.step_s:.3f} s"
    for name, true in ((NETWORK_SHARE, raw.network), (STRAGGLING_SHARE, raw.straggling)):
        value = figures.get(name)
        if value is None:
            if true >= SHARE_TOLERANCE:
                yield f"share: {name} is missing, and is {100 * true:.0f} %"
        elif abs(value - true) > SHARE_TOLERANCE:
            yield f"share: {name} {100 * value:.0f} % and not {100 * true:.0f} %"


def _duration_faults(
    said: dict[str, Said], raw: RawShares, attempts: list[dict[str, Any]], steps: int
) -> Iterator[str]:
    """Of all the time from the first start to the last end, so much was waiting."""
    took_s = attempts[-1]["started_at"] + attempts[-1]["wall_s"] - attempts[0]["started_at"]
    waited = (raw.network + raw.straggling + raw.data) * raw.step_s * steps / took_s
    for share in re.findall(r"(\d+) % of that time [^.]*was waiting", said["duration"].words):
        if abs(int(share) / 100 - waited) > 2 * SHARE_TOLERANCE:
            yield f"share: duration says {share} % waiting and not {100 * waited:.0f} %"
            return


def _since_faults(
    world: World, said: dict[str, Said], steps: list[RawStep], changes: list[dict[str, Any]]
) -> Iterator[str]:
    network = said["network"]
    since, until = (network.figures.get(f"{word} step") for word in ("since", "until"))
    last = max(step.step for step in steps)
    held = held_steps(world, steps, changes) or steps
    if world.is_intermittent:
        share = len(held) / len(steps)
        found = [int(n) / 100 for n in re.findall(r"(\d+) % of the steps", network.words)]
        if not any(abs(one - share) <= 0.15 for one in found):
            yield f"since: does not say that it holds in {100 * share:.0f} % of the steps"
        return
    if world.has_bounds and world.cause != "none":
        for name, value, true, edge in (
            ("since", since, held[0].step, steps[0].step),
            ("until", until, held[-1].step, last),
        ):
            if abs(true - edge) <= STEP_TOLERANCE:
                if value is not None and abs(value - edge) > STEP_TOLERANCE:
                    yield f"since: {name} step {value}, where there is no such bound"
            elif value is None:
                yield f"since: does not say {name} step {true}"
            elif abs(value - true) > STEP_TOLERANCE:
                yield f"since: {name} step {value} and not {true}"
        return
    for name, value, edge in (("since", since, steps[0].step), ("until", until, last)):
        if value is not None and abs(value - edge) > STEP_TOLERANCE and world.cause != "none":
            yield f"since: {name} step {value}, and it holds all through"


def _data_faults(world: World, said: dict[str, Said]) -> Iterator[str]:
    if world.slow_data and "data" not in said["network"].words:
        yield "words: the answer about the network does not mention data"


def _foreign_faults(world: World, said: dict[str, Said]) -> Iterator[str]:
    words = f"{said['network'].words} {said['devices'].words}"
    if world.busy_loops and not FOREIGN.search(words):
        yield "words: neither devices nor network mentions the other programs"


def _ring_faults(steps: list[RawStep], said: dict[str, Said], page: str) -> Iterator[str]:
    """Of runs that had rings of several sizes."""
    by_size = defaultdict(list)
    for step in steps:
        by_size[len(step.hosts)].append(step)
    for size in map(int, re.findall(r"ring of (\d+)", page)):
        if size not in by_size:
            yield f"words: a ring of {size}, which there was not"
    if len(by_size) < 2:
        return
    words = f"{said['step-time'].words} {said['traffic'].words}"
    lacking = [size for size in by_size if not re.search(rf"\b{size} (?:hosts|ranks|nodes)", words)]
    if lacking:
        yield f"words: steps and traffic leave out the attempts on {lacking} hosts"
    sizes = sorted(by_size)
    means = {size: shares_over(by_size[size]).step_s for size in sizes}
    for fewer, more in pairwise(sizes):
        if means[more] > SLOWER * means[fewer] and not re.search("slower", page):
            yield f"words: does not say that {more} hosts are slower than {fewer}"


def _advice_faults(said: dict[str, Said], run: Path, hosts: Sequence[str]) -> Iterator[str]:
    for key, answer in said.items():
        for one in answer.advice:
            if why := why_not_followable(one["command"], run, set(hosts)):
                yield f"advice: {key}: {why} ({one['text'][:60]}...)"
        if len(answer.advice) > 3:
            yield f"advice: {key}: {len(answer.advice)} pieces of advice"


def _contradictions(said: dict[str, Said], raw: RawShares) -> Iterator[str]:
    figures: dict[str, dict[str, float]] = defaultdict(dict)
    for key, answer in said.items():
        for name, value in answer.figures.items():
            if isinstance(value, (int, float)):
                figures[name][key] = value
    for name, values in figures.items():
        if max(values.values()) - min(values.values()) > 1e-6 * abs(max(values.values())):
            shown = ", ".join(f"{value:.4g} in {key}" for key, value in values.items())
            yield f"contradiction: {name} is {shown}"
    network, traffic, devices = said["network"].verdict, said["traffic"].words, said["devices"]
    is_network = network in ("network-bound", "latency-bound")
    if not is_network and re.search("traffic sets the time", traffic):
        yield f"contradiction: {network}, and traffic says that the traffic sets the time"
    if is_network and re.search("not the traffic", traffic):
        yield f"contradiction: {network}, and traffic says that it is not the traffic"
    waiting = raw.network + raw.straggling + raw.data
    if waiting > 0.6 and devices.verdict == "fully used":
        yield f"contradiction: devices are fully used, and wait {100 * waiting:.0f} % of the time"
    if waiting < 0.15 and devices.verdict == "mostly waiting":
        yield f"contradiction: devices mostly wait, and do so {100 * waiting:.0f} % of the time"


def _percent(value: Any) -> str:
    return f"{100 * value:.0f}" if isinstance(value, (int, float)) else "-"
