"""Which files is a checkpoint made of? The verdict is their number: "5 files"."""

from dragoman.checkpoints.names import CONTENTS, MODEL, OPTIMIZER, TOKENIZER
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed
from dragoman.diagnosis.run.facts import RunFacts


def answer(run: RunFacts) -> Finding:
    if not run.record.checkpoints:
        return unknown(
            f"there is no checkpoint yet. One will be a folder of {count(len(CONTENTS), 'file')}: "
            f"{_with_contents(list(CONTENTS))}",
            [Figure(name, None, "bytes", note=holds) for name, holds in CONTENTS.items()],
        )
    newest = run.record.checkpoints[-1]
    largest_first = sorted(newest.file_bytes.items(), key=lambda file: (-file[1], file[0]))
    missing = [name for name in CONTENTS if name not in newest.file_bytes]
    lacks, advice = "", ""
    if missing:
        lacks = f" It lacks {listed(missing)}, so it is not whole."
        advice = f"Do not use {newest.name}; `dragoman inspect` tells which checkpoints verify."
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
        advice,
    )


def _with_contents(names: list[str]) -> str:
    return "; ".join(f"{name} ({CONTENTS.get(name, 'unknown')})" for name in names)
