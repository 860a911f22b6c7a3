"""Windows: the steps from one synchronization to the next. Pure, without torch.

Where gradients are summed in every step, every step is a window. Inside of one, ranks hold
different weights, so that evaluations, saves and endings wait for its end. Where it ends follows
from the step alone: a run that is resumed at the end of a window ends the next ones at the same
steps as one that was never interrupted.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    steps: int
    """Of a whole window; 1: ranks synchronize in every step."""
    last_step: int | None = None
    """Of the run, where its last window ends early; None: not known."""

    def ends_at(self, step: int) -> bool:
        """Returns whether ranks hold the same weights after this step."""
        return step % self.steps == 0 or step == self.last_step

    def holds_multiple(self, step: int, every_steps: int) -> bool:
        """Returns whether the window that ends at `step` has a step that `every_steps` divides."""
        before = (step - 1) // self.steps * self.steps
        return step // every_steps > before // every_steps
