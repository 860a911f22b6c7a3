"""Did the run stand still, when, and for how long?

A run that trains, evaluates or saves leaves a sign of it at least every few steps. Where there is
none for much longer than a step takes, it hung; its sensors may well have gone on.
"""

import math

from dragoman.diagnosis.commands import train_command
from dragoman.diagnosis.findings import Advice, Figure, Finding
from dragoman.diagnosis.phrasing import count, listed, wall_time
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.silences import Silence

MOST_NAMED = 3


def answer(run: RunFacts) -> Finding | None:
    """Returns None where the run never hung."""
    silences = run.silences
    if not silences:
        return None
    total_s = math.fsum(silence.seconds for silence in silences)
    last = silences[-1]
    hangs_now = last.is_last and run.attempts[-1].state == "training"
    now = (
        f"No step, evaluation or save has come since step {last.step:,}, "
        f"{wall_time(last.seconds)} ago, though the run has not ended."
    )
    evidence = [
        Figure(f"after step {s.step:,}", s.seconds, "s", note=f"attempt {s.attempt}")
        for s in silences
    ]
    return Finding(
        verdict="hangs now" if hangs_now else count(len(silences), "time"),
        confidence="high",
        sentence=now if hangs_now else _sentence(run, total_s),
        evidence=[Figure("stood still", total_s, "s"), *evidence],
        advice=[_resume(run)] if hangs_now else [],
        plain=_plain(run, total_s, hangs_now),
    )


def _resume(run: RunFacts) -> Advice:
    from_where = "from its last checkpoint" if run.record.checkpoints else "from the beginning"
    return Advice(
        f"Start it again: it goes on {from_where}.",
        train_command(run, {}),
    )


def _plain(run: RunFacts, total_s: float, hangs_now: bool) -> str:
    last = run.silences[-1]
    if hangs_now:
        return (
            f"Yes: the run has done nothing for {wall_time(last.seconds)}, though it has not ended."
        )
    times = "once" if len(run.silences) == 1 else f"{len(run.silences)} times"
    return f"Yes: the run stood still {times}, for {wall_time(total_s)} in all."


def _sentence(run: RunFacts, total_s: float) -> str:
    silences = run.silences
    longest = sorted(silences, key=lambda silence: -silence.seconds)[:MOST_NAMED]
    named = [_in_words(silence) for silence in longest]
    more = f" and {len(silences) - MOST_NAMED} more times" if len(silences) > MOST_NAMED else ""
    sentence = f"Nothing happened for {wall_time(total_s)}: {listed(named)}{more}."
    if len(silences) == 1:
        sentence = f"Nothing happened for {named[0]}."
    ended = {silence.attempt for silence in silences if silence.is_last}
    reasons = [
        f"Attempt {attempt.number} then ended: {attempt.reason.splitlines()[0].rstrip('.')}."
        for attempt in run.attempts
        if attempt.number in ended and attempt.reason
    ]
    return " ".join([sentence, *reasons])


def _in_words(silence: Silence) -> str:
    why = f" (waiting for {silence.waited_for})" if silence.waited_for else ""
    return f"{wall_time(silence.seconds)} after step {silence.step:,}{why}"
