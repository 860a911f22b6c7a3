"""What a run has done so far: grows with its steps, and shrinks where it goes back. Pure."""

from dataclasses import dataclass, field


@dataclass
class StepsDone:
    """Seconds between two steps, of evaluating and saving, belong to the step before."""

    first: int | None = None
    """The step before the first one that is recorded."""
    last: int = 0
    spans: list[tuple[int, float]] = field(default_factory=list)
    """Steps and the seconds that they took, the newest last."""

    @property
    def steps(self) -> int:
        return 0 if self.first is None else self.last - self.first

    def add(self, step: int, seconds: float) -> None:
        self.spans.append((step, max(0.0, seconds)))
        self.last = max(self.last, step)

    def go_back_to(self, step: int) -> tuple[int, float]:
        """(steps, seconds) that are lost by it."""
        lost_s = 0.0
        while self.spans and self.spans[-1][0] > step:
            lost_s += self.spans.pop()[1]
        if self.first is None or step < self.first:
            self.first = step
        lost_steps = max(0, self.last - step)
        self.last = step
        return lost_steps, lost_s
