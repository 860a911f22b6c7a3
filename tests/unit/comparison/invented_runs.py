"""Invented runs to compare, and what their comparisons hold."""

from pathlib import Path

from unit.report.fake_run import CONFIG, FakeRun, evaluated, started, step

from dragoman.comparison.aspects import Aspect, Row
from dragoman.rundir import write_sentences
from dragoman.telemetry.events import AttemptEnded

REFERENCES = [f"Das ist der Satz mit der Nummer {number} ." for number in range(200)]


def run(root: Path, step_s: float = 1.0, config: str = CONFIG, **changes: object) -> FakeRun:
    made = FakeRun(root).with_manifest()
    made.directory.config.write_text(config)
    return made.with_events(
        [
            (0.0, started()),
            (2.0, step(1, step_s, **changes)),
            (4.0, step(2, step_s, **changes)),
            (5.0, evaluated(2)),
            (7200.0, AttemptEnded(2, "finished", "done")),
        ]
    )


def rows(aspect: Aspect) -> dict[str, Row]:
    return {row.what.strip(): row for row in aspect.rows}


def translated(
    made: FakeRun,
    translations: list[str],
    references: list[str] = REFERENCES,
    name: str = "test",
) -> None:
    directory = made.directory
    write_sentences(directory.evaluation_text(name, "translations"), translations)
    write_sentences(directory.evaluation_text(name, "references"), references)


def worse(share: int) -> list[str]:
    """Every so many translations is broken."""
    return [
        "Nichts davon ." if number % share == 0 else reference
        for number, reference in enumerate(REFERENCES)
    ]
