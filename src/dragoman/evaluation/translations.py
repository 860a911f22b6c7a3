"""The translations of each evaluation, kept as text: a later one is compared with the best so far.

Only rank 0 has any use for it. A disk that refuses to write costs the comparison, nothing else.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.errors import StorageError
from dragoman.evaluation.metrics import bleu_for
from dragoman.evaluation.significance import score_difference
from dragoman.rundir import RunDir, read_sentences, write_sentences


class ComparedWithBest(NamedTuple):
    step: int | None
    """None: there was no best before, or its translations are not there any more."""
    bleu_gain_p: float | None
    problem: str = ""
    """Why nothing could be written; only the first time."""


class Translations:
    def __init__(self, run: RunDir, target_language: str) -> None:
        self._run, self._language = run, target_language
        self._has_failed = False

    def keep(
        self,
        step: int,
        best_step: int | None,
        translations: Sequence[str],
        references: Sequence[str],
    ) -> ComparedWithBest:
        """Compares the translations with the best before `step`, then writes them."""
        compared = self._against(best_step, translations, references)
        try:
            if read_sentences(self._run.references) != list(references):
                write_sentences(self._run.references, references)
            write_sentences(self._run.translations(step), translations)
        except StorageError as error:
            if not self._has_failed:
                compared = compared._replace(problem=f"{error}; training goes on")
            self._has_failed = True
        return compared

    def _against(
        self, best_step: int | None, translations: Sequence[str], references: Sequence[str]
    ) -> ComparedWithBest:
        best = None if best_step is None else read_sentences(self._run.translations(best_step))
        # Of another number of sentences: evaluation.translate_sentences was changed in between.
        if not best or len(best) != len(translations):
            return ComparedWithBest(None, None)
        bleu = bleu_for(self._language)
        before, now = (bleu.counts(texts, references) for texts in (best, translations))
        difference = score_difference(bleu, before, now)
        return ComparedWithBest(best_step, difference.p)
