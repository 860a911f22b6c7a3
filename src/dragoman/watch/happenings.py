"""What is worth a line on the time line of a run: events, or a report, come in, lines go out.
Pure."""

from collections.abc import Container, Iterator

from dragoman.diagnosis.findings import Health
from dragoman.diagnosis.phrasing import count, listed, loss, seconds, size
from dragoman.report.content import Report
from dragoman.telemetry.events import CheckpointSaved, Evaluated, Incident
from dragoman.watch.content import Happening

_GRAVE = {"rollback", "out-of-memory", "weights-differ"}
_MOST_HOSTS = 4
_END_HEALTH: dict[str, Health] = {"finished": "good", "preempted": "watch", "failed": "poor"}
_END_WORDS = {"finished": "finished", "preempted": "was stopped", "failed": "failed"}


def started(at: float, attempt: int, first_step: int, ranks: int, hosts: list[str]) -> Happening:
    how = "began" if attempt == 1 and first_step <= 1 else "resumed"
    named = hosts[:_MOST_HOSTS]
    if len(hosts) > len(named):
        named.append(f"{len(hosts) - len(named)} more")
    on = f" on {listed(named)}" if named else ""
    text = f"attempt {attempt} {how} at step {count(first_step)} with {count(ranks, 'rank')}{on}"
    return Happening(at=at, text=text, health="fact")


def ended(at: float, attempt: int, step: int, state: str, reason: str) -> Happening:
    """`state`: finished, preempted or failed."""
    why = reason.partition("\n")[0]
    text = f"attempt {attempt} {_END_WORDS[state]} after step {count(step)}: {why}"
    return Happening(at=at, text=text, health=_END_HEALTH[state])


def lost(at: float, attempt: int, rank: int, host: str) -> Happening:
    who = rank_name(rank, host)
    return Happening(at=at, text=f"lost {who}", health="poor", lost=who, attempt=attempt)


def silent(at: float, rank: int, host: str) -> Happening:
    text = f"{rank_name(rank, host)} has fallen silent while others go on"
    return Happening(at=at, text=text, health="poor")


def back(at: float, rank: int, host: str) -> Happening:
    return Happening(at=at, text=f"{rank_name(rank, host)} is back", health="good")


def evaluated(at: float, event: Evaluated) -> Happening:
    text = f"evaluated at step {count(event.step)}: validation loss {loss(event.validation_loss)}"
    if event.bleu is not None:
        interval = ""
        if event.bleu_low is not None and event.bleu_high is not None:
            interval = f" ({event.bleu_low:.1f} to {event.bleu_high:.1f})"
        text += f", BLEU {event.bleu:.1f}{interval}"
    best = ", the best so far" if event.is_best else ""
    return Happening(at=at, text=text + best, health="good" if event.is_best else "fact")


def saved(at: float, event: CheckpointSaved) -> Happening:
    took = f"{size(event.bytes)} in {seconds(event.seconds)}"
    return Happening(at=at, text=f"saved {event.folder}: {took}", health="fact")


def incident(at: float, event: Incident, times: int = 1) -> Happening:
    again = f" ({count(times)} times)" if times > 1 else ""
    return Happening(
        at=at,
        text=f"step {count(event.step)}: {event.message}{again}",
        health="poor" if event.category in _GRAVE else "watch",
    )


def earlier(report: Report, seen: Container[int]) -> Iterator[Happening]:
    """Yields those of attempts whose events were not seen."""
    for attempt in report.attempts:
        if attempt.attempt not in seen:
            own = attempt.attempt, attempt.first_step, attempt.ranks, attempt.hosts
            yield started(attempt.started_at, *own)
            if attempt.state == "finished":
                end_at = attempt.started_at + attempt.wall_s
                yield ended(end_at, attempt.attempt, attempt.last_step, "finished", attempt.reason)
    for fault in report.faults:
        if fault.attempt not in seen:
            text = f"attempt {fault.attempt} {fault.kind} after step {count(fault.step)}"
            health: Health = "watch" if fault.kind == "preempted" else "poor"
            yield Happening(at=fault.at, text=f"{text}: {fault.what}", health=health)


def rank_name(rank: int, host: str) -> str:
    return f"rank {rank} on {host}" if host else f"rank {rank}"
