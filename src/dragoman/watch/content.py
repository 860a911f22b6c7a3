"""What a watched run shows at one moment: the same for the page, the terminal and notifications.

Two clocks run side by side. `Now` follows the events themselves, about once a second, and knows the
last minutes. The report, with its answers and its curves over the whole run, is renewed as often as
its cost allows.
"""

from dragoman.diagnosis.findings import Health
from dragoman.report.content import Content, Finite, HostCurve, Points, Report, StateName


class RankNow(Content):
    """What one worker did last."""

    rank: int
    host: str
    device: str
    step: int
    silent_s: float
    """Since its last event."""
    is_silent: bool = False
    """It does nothing while others go on. Ranks that wait for an evaluation are not meant."""
    step_s: Finite
    """Mean of its last steps."""
    parts_s: dict[str, float]
    """Part of a step -> mean seconds of its last steps, in the order in which they happen."""


class RecentSteps(Content):
    """The last minutes, as the lowest rank saw them, thinned to a few hundred points."""

    at: list[float]
    step: list[int]
    loss: Points
    step_s: Points


class Happening(Content):
    """Something worth a line on the time line: a start, an end, a fault, an incident, a save, an
    evaluation."""

    at: float
    text: str
    health: Health
    lost: str = ""
    """The rank that was lost, with its host: rank 1 on b; empty: none was."""
    attempt: int = 0
    """Of a loss: the attempt in which it was; else 0."""


class Now(Content):
    """A run at this moment."""

    name: str
    run: str
    """The folder, as it was named to the command."""
    at: float
    """When this was put together."""
    state: StateName
    sentence: str
    """The state in words."""
    trouble: str
    """Why the run, or a part of it, cannot be read; empty: it can."""
    attempt: int
    ranks_expected: int
    step: int
    planned_steps: int | None
    epoch: Finite
    loss: Finite
    learning_rate: Finite
    tokens_per_s: Finite
    """Over the last steps, of all ranks together."""
    bleu: Finite
    """Of the last evaluation that has scores."""
    bleu_step: int | None
    left_s: Finite
    """Until the planned end, at the pace of the last steps; None: it has ended, or has no plan."""
    left_low_s: Finite
    """With left_high_s: a 95 % interval."""
    left_high_s: Finite
    spent: Finite
    """Money so far, at the price of the recipe or the host list; None: no price is known."""
    currency: str
    ranks: list[RankNow]
    recent: RecentSteps
    hosts: list[HostCurve]
    """Each sensor of each host in the last minutes, on one clock."""
    happenings: list[Happening]
    """Newest last, at most some dozens."""


class VerdictChange(Content):
    """When an answer was seen to change while the run was watched."""

    key: str
    title: str
    verdict: str
    health: Health
    sentence: str
    """The plain sentence of the answer."""
    before: str
    """The verdict that it had; empty: this is the first that was seen."""
    at: float


class Watched(Content):
    """All that is shown of one run."""

    now: Now
    report: Report | None
    """None: it is being made for the first time, or cannot be made; then `now.trouble` says why."""
    changes: list[VerdictChange]
    """Oldest first; the first entry of a key is the verdict that was found when watching began."""
