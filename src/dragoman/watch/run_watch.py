"""Follows one run directory: files that grow come in, what is to be shown goes out.

Nothing is ever written into the run, and no process of it is spoken to.
"""

from dragoman.rundir import RunDir
from dragoman.watch.content import Watched


class RunWatch:
    """What is known of one run. Not for several threads at once.

    `refresh` reads what was added to the run's records since the last call, which takes
    milliseconds, and collects the report that a process of its own makes beside it, if one is
    ready; it never waits for one. Call it about once a second.
    """

    def __init__(self, run: RunDir) -> None: ...

    def refresh(self) -> Watched:
        """Never raises for what is wrong with a run directory: `Now.trouble` says it."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the process that makes a report, if there is one."""
