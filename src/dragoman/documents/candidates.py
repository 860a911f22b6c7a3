"""Candidates as lines of a program's input: a translated text comes in, TSV or JSON goes out."""

import json
from collections.abc import Sequence
from typing import Any

from dragoman.corpus.text import one_line
from dragoman.documents.record import TranslatedText

SCORE_DIGITS = 4


def candidate_rows(translated: TranslatedText, number: int, aligned: bool) -> str:
    """Returns a row for each candidate: line, sentence, rank, score, text, and its alignment.

    Tabs separate the columns. A line without a sentence has one row, so that each line has one: its
    translation is empty, and certain.
    """
    rows = [
        [str(sentence), str(rank), _shown(candidate.score), one_line(candidate.text)]
        + ([pharaoh(candidate.alignment)] if aligned else [])
        for sentence, (_, candidates) in enumerate(translated.sentences, start=1)
        for rank, candidate in enumerate(candidates, start=1)
    ]
    if not rows:
        rows = [["1", "1", _shown(0.0), ""] + ([""] if aligned else [])]
    return "\n".join("\t".join([str(number), *row]) for row in rows)


def _shown(score: float) -> str:
    return f"{score:.{SCORE_DIGITS}f}"


def pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """Returns pairs of source and target word in the format of Pharaoh and Moses: 0-0 1-2."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def sentence_objects(translated: TranslatedText, aligned: bool) -> list[dict[str, Any]]:
    """Returns sources and candidates of all sentences, for JSON."""
    return [
        {
            "source": source,
            "candidates": [
                {
                    "text": candidate.text,
                    "score": round(candidate.score, SCORE_DIGITS),
                    **({"alignment": pharaoh(candidate.alignment)} if aligned else {}),
                }
                for candidate in candidates
            ],
        }
        for source, candidates in translated.sentences
    ]


def json_line(content: object) -> str:
    """Returns JSON on one line; characters beyond ASCII as they are, where UTF-8 can hold them."""
    text = json.dumps(content, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # an escaped half of a surrogate pair came in
        return json.dumps(content)
    return text
