"""Which files is a checkpoint made of? The verdict is their number: "5 files"."""

import shlex
from dataclasses import replace

from dragoman.checkpoints.names import CONTENTS, MODEL, OPTIMIZER, TOKENIZER
from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.learning.kept import best_kept
from dragoman.diagnosis.learning.remedies import use_best
from dragoman.diagnosis.phrasing import count, listed
from dragoman.diagnosis.run.facts import RunFacts


def answer(run: RunFacts) -> Finding:
    if not run.record.checkpoints:
        found = unknown(
            f"there is no checkpoint yet. One will be a folder of {count(len(CONTENTS), 'file')}: "
            f"{_with_contents(list(CONTENTS))}",
            [Figure(name, None, "bytes", note=holds) for name, holds in CONTENTS.items()],
        )
        return replace(found, plain="No model has been saved yet.")
    newest = run.record.checkpoints[-1]
    largest_first = sorted(newest.file_bytes.items(), key=lambda file: (-file[1], file[0]))
    missing = [name for name in CONTENTS if name not in newest.file_bytes]
    lacks = f" It lacks {listed(missing)}, so it is not whole." if missing else ""
    plain = (
        f"A saved model is a folder of {count(len(newest.file_bytes), 'file')}; two of them are "
        "enough to translate."
    )
    if missing:
        plain = "The newest saved model is damaged: some of its files are missing."
    return Finding(
        count(len(newest.file_bytes), "file"),
        "high",
        f"A checkpoint is a folder, the newest is {newest.name}, with "
        f"{count(len(newest.file_bytes), 'file')}: "
        f"{_with_contents([name for name, _ in largest_first])}. {MODEL} and {TOKENIZER} alone are "
        f"enough to translate; {OPTIMIZER} is needed to go on training only.{lacks}",
        [
            Figure(name, size, "bytes", note=CONTENTS.get(name, "not written by this program"))
            for name, size in largest_first
        ],
        _instead_of(newest.name, run) if missing else [],
        plain,
    )


def _instead_of(damaged: str, run: RunFacts) -> list[Advice]:
    """Returns what to do where the newest checkpoint is not whole."""
    if best_kept(run):
        return use_best(run, f"{damaged} is not whole")
    folder = shlex.quote(str(run.record.directory.root))
    return [Advice(f"Do not use {damaged}; see what else was saved.", f"dragoman inspect {folder}")]


def _with_contents(names: list[str]) -> str:
    return "; ".join(f"{name} ({CONTENTS.get(name, 'unknown')})" for name in names)
