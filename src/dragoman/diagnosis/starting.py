"""What has to be done beside the command of an advice: a run to stop, a launcher to call.

Advice comes in, the same advice in words that are complete for this run goes out. Pure.
"""

import re
import tomllib
from dataclasses import replace

from dragoman.diagnosis.commands import (
    flat_settings,
    folder_for,
    is_in_progress,
    is_recipe_line,
    other_launcher,
    train_command,
)
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.run.facts import RunFacts

_TRAINS = re.compile(r"\bdragoman train\b")


def with_start(run: RunFacts, advice: Advice) -> Advice:
    """Returns the advice with the words that say how to stop and start the run for it."""
    words = [advice.text, *_words(run, advice.command)]
    return replace(advice, text=" ".join(words))


def _words(run: RunFacts, command: str) -> list[str]:
    launcher = other_launcher(run)
    starts = _TRAINS.search(command) is not None
    if launcher and is_recipe_line(command):
        starts = True
        how = f"Put this into the recipe and {_start_with(run, launcher, command)}."
    elif launcher and command == train_command(run, {}):
        starts = True
        how = (
            f"That is the same job, started with {launcher} as before; this shows the checkpoints "
            "that it can go on from."
        )
    elif is_recipe_line(command) and is_in_progress(run):
        return ["It counts from the next start on."]
    else:
        how = ""
    stop = f"Before that, stop the run: {stopping(run)}." if starts and is_in_progress(run) else ""
    return [word for word in (how, stop) if word]


def _start_with(run: RunFacts, launcher: str, lines: str) -> str:
    folder = folder_for(run, flat_settings(tomllib.loads(lines)))
    if folder == run.record.directory.root:
        return f"start the job again with {launcher}, as before"
    return f"start a new run with {launcher}, as before but with --run {folder}"


def stopping(run: RunFacts) -> str:
    """Returns how to stop a run that is in progress."""
    if other_launcher(run) == "srun":
        return "scancel with the number of its job ends it, and it saves its last step first"
    return (
        "press Ctrl-C where it was started, and it saves its last step first; twice ends one that "
        "hangs"
    )
