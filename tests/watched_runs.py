"""Watched runs as values: what notifications are decided from."""

from dragoman.report.content import Answer, Report, RunState
from dragoman.watch.content import Happening, Now, RecentSteps, Watched


def now(at=1000.0, state="training", step=10, **more):
    values = {
        "name": "demo",
        "run": "runs/demo",
        "at": at,
        "state": state,
        "sentence": f"It is {state}.",
        "trouble": "",
        "attempt": 1,
        "ranks_expected": 2,
        "step": step,
        "planned_steps": 100,
        **dict.fromkeys(("epoch", "loss", "learning_rate", "tokens_per_s", "bleu", "bleu_step")),
        **dict.fromkeys(("left_s", "left_low_s", "left_high_s", "spent")),
        "currency": "USD",
        "ranks": [],
        "recent": RecentSteps(at=[], step=[], loss=[], step_s=[]),
        "hosts": [],
        "happenings": [],
    }
    return Now(**(values | more))


def loss_of(who, attempt=1, at=1000.0):
    return Happening(at=at, text=f"{who} was killed", health="poor", lost=who, attempt=attempt)


def answer(key="network", verdict="network-bound", health="poor", confidence="high", command=""):
    advice = {"text": "Do.", "command": command, "is_recipe": False, "recipe": "", "saves": ""}
    return Answer(
        key=key,
        question="?",
        verdict=verdict,
        health=health,
        confidence=confidence,
        plain="The link is too slow.",
        sentence="Figures.",
        evidence=[],
        advice=[advice | {"saves_s": None, "saves_cost": None}],
    )


def watched(*answers, state_command="", has_report=True, **of_now):
    moment = now(**of_now)
    state = RunState(
        name=moment.state,
        reason="",
        step=moment.step,
        planned_steps=100,
        silent_s=None,
        remaining_s=None,
        sentence="",
        command=state_command,
    )
    # Only what messages are made of.
    report = Report.model_construct(answers=list(answers), also=[], state=state)
    return Watched.model_construct(now=moment, report=report if has_report else None, changes=[])
