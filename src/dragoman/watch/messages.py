"""What is worth a notification: a watched run and what was sent of it come in, messages go out.

Pure: `messages_of` is called with each reading of a run, and keeps what it must remember in `Sent`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dragoman.diagnosis.questions import question_of
from dragoman.report.content import Answer, Content, StateName
from dragoman.watch.content import Now, Watched

MessageKind = Literal["verdict", "lost", "end", "test"]

FORGOTTEN_AFTER_S = 600.0
"""A bad verdict that comes back sooner is the same trouble, which was sent before."""


class Message(Content):
    """One notification, as webhooks and commands receive it."""

    kind: MessageKind
    text: str
    """All of it for people, in one paragraph; Slack and Mattermost show this field."""
    run: str
    """The name of the run."""
    started_on: str
    """The host on which `dragoman train` was started."""
    state: StateName
    step: int
    at: float
    """Seconds since 1970."""
    sentence: str
    """What has happened."""
    question: str = ""
    """Of a verdict: the key of the question, as in report.json; else empty."""
    verdict: str = ""
    """Of a verdict: a few words; else empty."""
    lost: str = ""
    """Of a loss: the rank with its host, such as rank 1 on b; else empty."""
    command: str = ""
    """What to do about it, for a shell or as lines of the recipe; empty: nothing is known."""


class Ending(Content):
    """How the launcher of a run ended."""

    code: int | None
    """Its exit code; None: it was killed."""
    error: str = ""
    """The sentence with which it failed; empty: without one."""

    @property
    def is_refusal(self) -> bool:
        """It was refused where it was typed, and has changed nothing."""
        return self.code in (2, 3)


@dataclass(frozen=True)
class Sent:
    """What has been sent of a run, so that nothing is sent twice."""

    attempts_before: int
    """What was lost in these is known. They are counted, as the clock by which a loss is recorded
    may be hours away from ours."""
    had_begun: bool
    """There were records when watching began: what is bad in the first report is known."""
    had_report: bool = False
    bad: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(question, verdict) -> when it was bad last."""
    lost: frozenset[tuple[int, str]] = frozenset()
    """(attempt, who)."""
    end: bool = False


def messages_of(
    watched: Watched, sent: Sent, started_on: str, ending: Ending | None = None
) -> tuple[list[Message], Sent]:
    """Returns what is to be sent now, and what has been sent then.

    `ending`: the launcher has ended, and with it the run; None: it has not, or there is none, and
    a run that failed may go on.
    """
    now = watched.now
    losses = {(each.attempt, each.lost) for each in now.happenings if each.lost}
    messages = [
        _of(now, "lost", f"{who} was lost at step {now.step:,}.", started_on, lost=who)
        for attempt, who in sorted(losses - sent.lost)
        if attempt > sent.attempts_before
    ]
    sent = replace(sent, lost=sent.lost | losses)
    if watched.report:
        is_known = sent.had_begun and not sent.had_report
        for answer in _bad_answers(watched):
            key = (answer.key, answer.verdict)
            before = sent.bad.get(key)
            is_new = before is None or now.at - before > FORGOTTEN_AFTER_S
            if is_new and not is_known:
                messages.append(_verdict(now, answer, started_on))
            sent = replace(sent, bad={**sent.bad, key: now.at})
        sent = replace(sent, had_report=True)
    if ending and not ending.is_refusal and not sent.end:
        messages.append(_end(watched, ending, started_on))
        sent = replace(sent, end=True)
    return messages, sent


def trial_message(name: str, started_on: str, at: float) -> Message:
    sentence = "This is a test: notifications of this run arrive here."
    return _message("test", name, sentence, started_on, state="preparing", step=0, at=at)


def message_schema() -> dict[str, Any]:
    schema = Message.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


def _bad_answers(watched: Watched) -> Iterator[Answer]:
    """Yields the answers that need action; not those that more steps may well overturn."""
    assert watched.report
    for answer in (*watched.report.answers, *watched.report.also):
        if answer.health == "poor" and answer.confidence in ("high", "medium"):
            yield answer


def _verdict(now: Now, answer: Answer, started_on: str) -> Message:
    title = question_of(answer.key).title.rstrip("?")
    sentence = f"{title}: {answer.verdict}. {answer.plain or answer.sentence}"
    command = next((advice.command for advice in answer.advice if advice.command), "")
    of_verdict = {"question": answer.key, "verdict": answer.verdict, "command": command}
    return _of(now, "verdict", sentence, started_on, **of_verdict)


def _end(watched: Watched, ending: Ending, started_on: str) -> Message:
    now, report = watched.now, watched.report
    state, sentence = now.state, now.sentence
    if state in ("preparing", "training"):
        # Nothing recorded an end: it was killed, or failed before or after its steps.
        state = "broken off" if ending.code is None else "failed" if ending.code else state
        how = "was killed" if ending.code is None else f"ended with exit code {ending.code}"
        sentence = f"`dragoman train` {how} at step {now.step:,}."
    if ending.error and ending.error not in sentence:
        sentence = f"{sentence} {ending.error}"
    has_state = report is not None and report.state.name == state
    command = report.state.command if report and has_state else ""
    return _of(now, "end", sentence, started_on, state=state, command=command)


def _of(now: Now, kind: MessageKind, sentence: str, started_on: str, **more: Any) -> Message:
    known = {"state": now.state, "step": now.step, "at": now.at}
    return _message(kind, now.name, sentence, started_on, **(known | more))


def _message(
    kind: MessageKind, name: str, sentence: str, started_on: str, command: str = "", **more: Any
) -> Message:
    sentence = " ".join(sentence.split())
    what_to_do = f" What to do: {command}" if command else ""
    return Message(
        kind=kind,
        text=f"{name}, started on {started_on}: {sentence}{what_to_do}",
        run=name,
        started_on=started_on,
        sentence=sentence,
        command=command,
        **more,
    )
