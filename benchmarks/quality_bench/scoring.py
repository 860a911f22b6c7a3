"""Scores the translations of the test set: as sacreBLEU does by itself, and in the published form.

Published figures of Multi30k are those of lower-cased text in tokens of Moses; `peers/moses.py`
makes that of translations and references alike.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from dragoman.evaluation.metrics import bleu_for, bleu_of_tokens
from dragoman.evaluation.scoring import MetricScore, measured

MOSES = Path(__file__).parent / "peers" / "moses.py"
PUBLISHED_FORM = (
    "lower-cased, punctuation normalized, in tokens of Moses without hyphen splitting and with "
    "escapes, as scripts/task1-tokenize.sh of github.com/multi30k/dataset makes *.lc.norm.tok.*"
)


def plain_score(
    translations: Sequence[str], references: Sequence[str], language: str
) -> MetricScore:
    """Scores detokenized text, with the tokens that sacreBLEU has for the language."""
    return measured(bleu_for(language), translations, references)


def published_score(translations: Sequence[str], references: Sequence[str]) -> MetricScore:
    """Scores lines that `moses_tokens` has made: words are what stands between spaces."""
    return measured(bleu_of_tokens(), translations, references)


def moses_tokens(python: Path, lines: Sequence[str], language: str) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    command = [str(python), str(MOSES), language]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=True, env={"PYTHONPATH": ""}
    )
    return done.stdout.decode().removesuffix("\n").split("\n")
