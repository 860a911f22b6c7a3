"""Would one more machine help? And would one fewer do?"""

from collections.abc import Sequence
from typing import Literal

from dragoman.diagnosis.answers.network_advice import fewer_hosts
from dragoman.diagnosis.findings import Advice, Figure, Finding, recorded
from dragoman.diagnosis.phrasing import bit_rate, count, percent, seconds, size
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS
from dragoman.diagnosis.speed.causes import causes_of
from dragoman.diagnosis.speed.layouts import comparison_of, layouts_of
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.teams import TeamPace, Teams, teams_of

Verdict = Literal["yes", "little", "no", "not known"]

WELL_USED = 0.5
"""Of what one more machine could bring at best: with so much it is worth its price."""
LEAST_GAIN = 0.03
"""Faster by less is as good as nothing."""
HARDLY_SLOWER = 0.10
"""A run that would be slower by no more than this on fewer machines has too many."""
LINKS = (1e9 / 8, 10e9 / 8)
"""Bytes a second of links that one can rent, 1 and 10 Gbit/s."""
HOW = (
    "This is projected from the mean step: computing is shared out anew for the same tokens, a "
    "ring sends a little more over each link, and other waiting stays as it is."
)
NOTE = "projected; part of the network's time may pass beside computing"


def answer(run: RunFacts) -> Finding | None:
    """Returns None where there are too few steps to say, or no split of them."""
    teams = teams_of(run)
    if teams is None or teams.now.steps < FEW_STEPS:
        return None
    if teams.now.hosts == 1 and not any(hosts > 1 for hosts in teams.measured):
        return _one_host(run, teams)
    larger = [hosts for hosts in teams.measured if hosts > teams.now.hosts]
    smaller = [hosts for hosts in teams.measured if hosts < teams.now.hosts]
    more = teams.with_hosts(min(larger, default=teams.now.hosts + 1))
    fewer = None
    if teams.now.hosts > 1:
        fewer = teams.with_hosts(max(smaller, default=teams.now.hosts - 1))
    enough = teams.next_with_less_work()
    verdict = verdict_of(teams.now.hosts, more)
    if fewer and _are_better(fewer, more):
        verdict = "no"
    sentences = [
        _in_words(teams, more),
        _division_in_words(teams, more, enough),
        _in_words(teams, fewer) if fewer else "",
        comparison_of(layouts_of(run), run.config.cost),
        "" if more.is_measured else HOW,
    ]
    return Finding(
        verdict,
        "high" if more.is_measured else "medium",
        " ".join(words for words in sentences if words),
        evidence=[
            Figure("hosts", teams.now.hosts, ""),
            Figure(f"mean step with {count(teams.now.hosts, 'host')}", teams.now.split.step_s, "s"),
            *_figures(more),
            *(_figures(enough) if enough and enough.team.hosts != more.team.hosts else []),
            *(_figures(fewer) if fewer else []),
        ],
        advice=_advice(run) if verdict != "yes" else [],
        plain=_plain(verdict, more, fewer),
    )


def verdict_of(now_hosts: int, more: TeamPace) -> Verdict:
    gain = more.team.speed_up - 1
    at_best = more.team.hosts / now_hosts - 1
    if gain >= max(LEAST_GAIN, WELL_USED * at_best):
        return "yes"
    return "little" if gain >= LEAST_GAIN else "no"


def _plain(verdict: Verdict, more: TeamPace, fewer: TeamPace | None) -> str:
    gain, dearer = more.team.speed_up - 1, more.team.cost_factor - 1
    machine = f"{count(more.team.hosts)} machines"
    price = f"cost {100 * dearer:.0f} % more" if dearer >= 0.005 else "cost no more"
    faster = f"about {100 * gain:.0f} % faster"
    match verdict:
        case "yes":
            return f"Yes: {machine} would be {faster}, and each token would {price}."
        case "little":
            return f"A little: {machine} would be {faster}, but each token would {price}."
    if gain <= LEAST_GAIN:
        faster = "slower" if gain < -LEAST_GAIN else "hardly faster"
    words = f"No: {machine} would be {faster}, and each token would {price}"
    if fewer and _are_better(fewer, more):
        alone = "1 machine alone" if fewer.team.hosts == 1 else f"{fewer.team.hosts} machines"
        words += f"; even {alone} would be faster than now"
    return f"{words}."


def _are_better(fewer: TeamPace, more: TeamPace) -> bool:
    """Returns whether the way to a faster run is fewer machines, not more."""
    return fewer.team.speed_up > max(1 + LEAST_GAIN, more.team.speed_up)


def _in_words(teams: Teams, pace: TeamPace) -> str:
    team = pace.team
    takes, dearer = ("took", "cost") if pace.is_measured else ("would take about", "would cost")
    change = team.cost_factor - 1
    price = "as much" if abs(change) < 0.005 else f"{percent(abs(change))} {_more_or_less(change)}"
    return (
        f"On {count(team.hosts, 'host')} a step {takes} {seconds(team.step_s)} instead of "
        f"{seconds(teams.now.split.step_s)} ({team.speed_up:.2f} times as fast), and a token "
        f"{dearer} {price}."
    )


def _more_or_less(change: float) -> str:
    return "more" if change > 0 else "less"


def _division_in_words(teams: Teams, more: TeamPace, enough: TeamPace | None) -> str:
    """Says where the work does not divide among one more, and among how many it would."""
    members = teams.members.of_hosts(more.team.hosts)
    if more.is_measured or members.micro_batches is None:
        return ""
    if not members.has_work_for_all:
        batches = f"{members.micro_batches} micro-batch{'' if members.micro_batches == 1 else 'es'}"
        return (
            f"A step has {batches} to share out, too few for "
            f"{count(members.ranks, 'rank')}; smaller ones are reckoned with "
            "(training.micro_batch_tokens, in a new run)."
        )
    if enough is None or enough.team.hosts == more.team.hosts:
        return ""
    return (
        f"Its {members.micro_batches} micro-batches are given out whole, so the busiest rank would "
        f"have as many as now; on {count(enough.team.hosts, 'host')} it would have fewer, and a "
        f"step would take about {seconds(enough.team.step_s)}."
    )


def _figures(pace: TeamPace) -> list[Figure]:
    name = f"step on {count(pace.team.hosts, 'host')}"
    note = "measured in this run" if pace.is_measured else "projected"
    return recorded(
        Figure(name, pace.team.step_s, "s", note=note),
        Figure(f"{name}, cost of a token", pace.team.cost_factor, "", note="over that of now"),
    )


def _advice(run: RunFacts) -> Sequence[Advice]:
    """Returns the command for fewer machines, where they would be as fast or nearly so."""
    speed = speed_of(run)
    if speed is None or speed.bottleneck is None:
        return []
    causes = causes_of(run, speed, speed.bottleneck)
    return fewer_hosts(run, causes, least_speed_up=1 - HARDLY_SLOWER)


def _one_host(run: RunFacts, teams: Teams) -> Finding:
    """One machine says nothing about a network: what it would have to carry can be computed."""
    alone = teams.with_hosts(2).team
    wire_bytes = teams.members.of_hosts(2).wire_factor * run.record.model_size.gradient_bytes
    step_s = teams.now.split.step_s
    saved_s = step_s - alone.step_s
    takes = {rate: wire_bytes / rate for rate in LINKS}
    gains = {rate: step_s / (alone.step_s + takes_s) - 1 for rate, takes_s in takes.items()}
    figures = [
        Figure("hosts", 1, ""),
        Figure("mean step with 1 host", step_s, "s"),
        Figure("step on 2 hosts without any network", alone.step_s, "s", note="projected"),
        Figure("bytes a step over the network", wire_bytes, "bytes", note="of each of 2 hosts"),
        *(
            Figure(f"step on 2 hosts at {bit_rate(rate)}", alone.step_s + takes_s, "s", note=NOTE)
            for rate, takes_s in takes.items()
        ),
    ]
    slow, fast = LINKS
    verdict: Verdict = "not known"
    if gains[slow] >= WELL_USED:
        verdict = "yes"
    elif gains[fast] < LEAST_GAIN:
        verdict = "no"
    each = " and ".join(f"{seconds(takes[rate])} at {bit_rate(rate)}" for rate in LINKS)
    sentence = (
        f"A second machine would halve computing at best: a step of {seconds(step_s)} would become "
        f"{seconds(alone.step_s)}. Then {size(wire_bytes)} pass over the network in each step, "
        f"which takes {each}, less what passes beside computing."
    )
    if saved_s > 0:
        sentence += f" Below {bit_rate(wire_bytes / saved_s)} two machines may be slower than one."
    plain = {
        "yes": "Yes: a second machine would help, even over an ordinary network.",
        "no": "No: a second machine would not help, because there is too little work to share.",
    }.get(verdict, "That depends on the network: a second machine helps if it is fast enough.")
    return Finding(
        verdict, "none" if verdict == "not known" else "medium", sentence, figures, plain=plain
    )
