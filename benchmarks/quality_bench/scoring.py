"""Scores the translations of the test set: as sacreBLEU does by itself, and in the published form.

Published figures of Multi30k are those of lower-cased text in tokens of Moses; `peers/moses.py`
makes that of translations and references alike.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from dragoman.evaluation.significance import bleu_for, bleu_interval, sentence_counts

MOSES = Path(__file__).parent / "peers" / "moses.py"
PUBLISHED_FORM = (
    "lower-cased, punctuation normalized, in tokens of Moses without hyphen splitting and with "
    "escapes, as scripts/task1-tokenize.sh of github.com/multi30k/dataset makes *.lc.norm.tok.*"
)


class Score(NamedTuple):
    bleu: float
    low: float
    """With `high` the 95 % interval, from 1,000 draws of sentences."""
    high: float
    signature: str


def plain_score(translations: Sequence[str], references: Sequence[str], language: str) -> Score:
    """Scores detokenized text, with the tokens that sacreBLEU has for the language."""
    return _score(bleu_for(language), translations, references)


def published_score(translations: Sequence[str], references: Sequence[str]) -> Score:
    """Scores lines that `moses_tokens` has made: words are what stands between spaces."""
    return _score(BLEU(tokenize="none", force=True), translations, references)


def moses_tokens(python: Path, lines: Sequence[str], language: str) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    command = [str(python), str(MOSES), language]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=True, env={"PYTHONPATH": ""}
    )
    return done.stdout.decode().removesuffix("\n").split("\n")


def _score(bleu: BLEU, translations: Sequence[str], references: Sequence[str]) -> Score:
    found = bleu.corpus_score(list(translations), [list(references)]).score
    interval = bleu_interval(sentence_counts(bleu, translations, references))
    return Score(found, *interval, str(bleu.get_signature()))
