"""Which checkpoint of a run is the best that is still there. Pure, of what was read."""

import math

from dragoman.checkpoints.names import CONTENTS
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.record import CheckpointFolder


def best_kept(run: RunFacts) -> CheckpointFolder | None:
    """Returns the whole checkpoint that the link `best` names; where it is gone, the one with the
    best evaluation of those that are kept; None: no evaluated checkpoint is left."""
    whole = {
        folder.step: folder
        for folder in run.record.checkpoints
        if all(name in folder.file_bytes for name in CONTENTS)
    }
    named = [folder for folder in whole.values() if folder.name == run.record.best_checkpoint]
    if named:
        return named[0]
    by_bleu = run.config.evaluation.best_by == "bleu"
    scores = {
        e.step: e.bleu if by_bleu and e.bleu is not None else -e.validation_loss
        for e in run.evaluations
        if e.step in whole
    }
    finite = {step: score for step, score in scores.items() if math.isfinite(score)}
    return whole[max(finite, key=lambda step: (finite[step], -step))] if finite else None
