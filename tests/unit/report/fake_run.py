"""A run directory as training leaves it, written by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.events import (
    FORMAT,
    AttemptStarted,
    Evaluated,
    Event,
    Stamped,
    StepDone,
    to_line,
)
from dragoman.telemetry.read.tables import Array, Table

CONFIG = """
name = "tiny"

[data]
source_language = "en"
target_language = "de"
train = [{ kind = "text", source = "train.en", target = "train.de" }]
validation = [{ kind = "text", source = "valid.en", target = "valid.de" }]
test = [{ kind = "text", source = "test.en", target = "test.de" }]

[tokenizer]
vocabulary = 32768

[model]
preset = "transformer-base"

[training]
steps = 4
"""

# When attempt 1 begins, on the wall and on the host's monotonic clock.
WALL_AT, MONOTONIC_AT = 1_700_000_000.0, 500.0


def started(attempt: int = 1, rank: int = 0, ranks: int = 1, first_step: int = 1) -> AttemptStarted:
    return AttemptStarted(attempt, rank, ranks, f"host-{rank}", "cpu", first_step, FORMAT)


def step(number: int, step_s: float = 1.0, **changes: object) -> StepDone:
    fields: dict[str, object] = {
        "step": number,
        "epoch": number / 8,
        "loss": 10.0 - number,
        "tokens": 100,
        "learning_rate": number * 1e-4,
        "gradient_norm": 1.0,
        "updated": True,
        "step_s": step_s,
        "parts_s": {"data": 0.25 * step_s, "backward": 0.75 * step_s},
    }
    return StepDone(**(fields | changes))  # type: ignore[arg-type]


def step_table(step_s: Array, **changes: Array | float) -> Table:
    """Steps as columns, for runs too long to be written: `step` of each number, on rank 0."""
    numbers = np.arange(1, len(step_s) + 1)
    like = step(1)
    columns: dict[str, object] = {"attempt": 1, "rank": 0, "at": WALL_AT + np.cumsum(step_s)}
    columns |= {"wall_at": columns["at"], "monotonic_at": MONOTONIC_AT + np.cumsum(step_s)}
    columns |= {"step": numbers, "epoch": numbers / 8, "loss": 2 + 1 / numbers, "step_s": step_s}
    columns |= {"tokens": like.tokens, "learning_rate": numbers * 1e-6, "gradient_norm": 1.0}
    columns |= {"updated": True, "memory_peak_bytes": np.nan} | changes
    return Table(
        {name: np.broadcast_to(np.asarray(v), len(step_s)) for name, v in columns.items()},
        {
            "parts_s": {name: share * step_s for name, share in like.parts_s.items()},
            "traffic_bytes": {},
            "counts": {},
        },
    )


def evaluated(number: int, bleu: float | None = 20.0, **changes: object) -> Evaluated:
    fields: dict[str, object] = {
        "step": number,
        "validation_loss": 3.0,
        "train_sample_loss": 2.5,
        "bleu": bleu,
        "chrf": 50.0,
        "bleu_signature": "nrefs:1|case:mixed",
        "chrf_signature": "nrefs:1|nc:6",
        "is_best": True,
        "seconds": 2.0,
        "samples": [{"source": "Hello.", "translation": "Hallo.", "reference": "Hallo."}],
    }
    return Evaluated(**(fields | changes))  # type: ignore[arg-type]


def side(file: str, tokens: int) -> dict[str, object]:
    return {
        "file": file,
        "bytes": 2_000_000,
        "tokens": tokens,
        "unknown_tokens": 3,
        "lengths": [7, 3],
    }


def split(pairs_in: int, pairs_kept: int, dropped: dict[str, int]) -> dict[str, object]:
    return {
        "pairs_in": pairs_in,
        "pairs_kept": pairs_kept,
        "pairs_per_epoch": pairs_kept,
        "sources": [],
        "dropped": dropped,
        "source": side("s", 700),
        "target": side("t", 800),
        "shards": [],
    }


MANIFEST = {
    "data": {
        "key": "",
        "source_language": "en",
        "target_language": "de",
        "vocabulary": 32768,
        "used_pieces": 30000,
        "tokenizer_file": "tokenizer.model",
        "tokenizer_sha256": "",
        "inputs": [{"path": "train.en", "bytes": 5, "modified_ns": 0, "sha256": ""}],
        "command": [],
        "splits": {
            "train": split(1000, 990, {"source empty": 10}),
            "validation": split(50, 50, {}),
        },
        "versions": {},
    },
    "attempts": [
        {
            "attempt": 1,
            "members": [
                {"host": "host-0", "device": "cpu"},
                {"host": "host-1", "device": "cpu"},
            ],
        }
    ],
}


class FakeRun:
    """Writes the files of a run; each attempt begins 1,000 s after the one before."""

    def __init__(self, root: Path) -> None:
        self.directory = RunDir(root)
        root.mkdir()
        self.directory.config.write_text(CONFIG)

    def with_manifest(self) -> "FakeRun":
        write_json(self.directory.manifest, MANIFEST)
        return self

    def with_events(
        self, events: Sequence[tuple[float, Event]], attempt: int = 1, rank: int = 0
    ) -> "FakeRun":
        """`events`: (seconds since the attempt began, event)."""
        path = self.directory.events_of(attempt, rank)
        path.parent.mkdir(exist_ok=True)
        begun = 1000.0 * (attempt - 1)
        path.write_text(
            "".join(
                to_line(Stamped(WALL_AT + begun + at, MONOTONIC_AT + begun + at, event))
                for at, event in events
            )
        )
        return self

    def with_checkpoint(self, number: int, **file_bytes: int) -> "FakeRun":
        folder = self.directory.checkpoints / f"step-{number:08d}"
        folder.mkdir(parents=True)
        for name, size in file_bytes.items():
            (folder / name.replace("__", ".")).write_bytes(bytes(size))
        return self
