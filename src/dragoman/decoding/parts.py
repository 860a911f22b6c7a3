"""What is special about pieces of lines: prefixes, terms, unknown characters; most have nothing."""

from collections.abc import Sequence

from dragoman.decoding.constraints import Terms
from dragoman.decoding.glossary import Term, normal_form
from dragoman.decoding.rendering import Part
from dragoman.decoding.splitting import Piece
from dragoman.decoding.unknown import (
    Aside,
    Run,
    set_aside,
    spans_of_whole_words,
    torn_words,
    unknown_runs,
)
from dragoman.tokenizer import Ids, Span, Tokenizer


def parts_of(
    lines: Sequence[Sequence[Piece]],
    encoded: list[Ids],
    tokenizer: Tokenizer,
    prefixes: Sequence[str] = (),
    terms: Terms | None = None,
    is_aligned: bool = False,
) -> dict[int, Part]:
    """Returns the special pieces of all lines by their number among all pieces.

    Replaces the ids in `encoded` where characters are set aside. A prefix is one of the first piece
    of its line with any text.
    """
    parts: dict[int, Part] = {}
    if not (prefixes or terms or is_aligned or any(tokenizer.unknown in ids for ids in encoded)):
        return parts
    number = 0
    for line_number, line in enumerate(lines):
        prefix = " ".join(prefixes[line_number].split()) if prefixes else ""
        for piece in line:
            ids = encoded[number]
            matched = terms.glossary.matches(piece.text) if terms else []
            is_special = prefix or matched or is_aligned or tokenizer.unknown in ids
            if is_special and len(ids) > 1:
                part = _part(piece.text, prefix, matched, terms, is_aligned, tokenizer)
                encoded[number] = [*(span.piece for span in part.spans), tokenizer.end]
                parts[number] = part
                prefix = ""
            number += 1
    return parts


def _part(
    text: str,
    prefix: str,
    matched: Sequence[Term],
    terms: Terms | None,
    is_aligned: bool,
    tokenizer: Tokenizer,
) -> Part:
    patterns = tuple(terms.patterns[term.target] for term in matched) if terms else ()
    spans, runs = _spans_and_runs(text, tokenizer, matched)
    aside = set_aside(text, runs, keep_begin=bool(prefix)) if runs else Aside("", text, "")
    is_in_prefix = any(text[run.begin : run.end] in prefix for run in runs)
    if is_in_prefix or (patterns and not tokenizer.spans(aside.rest)):
        aside = Aside("", text, "")
    if aside.rest != text:
        spans, runs = _spans_and_runs(aside.rest, tokenizer, matched)
    return Part(
        aside.rest,
        tuple(spans),
        tuple(runs),
        aside.before,
        aside.after,
        prefix,
        tuple(tokenizer.encode([prefix])[0][:-1]) if prefix else (),
        patterns,
        is_aligned,
    )


def _spans_and_runs(
    text: str, tokenizer: Tokenizer, matched: Sequence[Term]
) -> tuple[list[Span], list[Run]]:
    """Returns the pieces of a text and its unknown runs, words with unknown letters as one run.

    Those that a term translates are left out: they would be copied beside their translation.
    """
    spans = tokenizer.spans(text)
    runs = unknown_runs(text, spans, tokenizer.unknown)
    if words := torn_words(text, runs):
        spans = spans_of_whole_words(text, words, runs, tokenizer.spans)
        runs = unknown_runs(text, spans, tokenizer.unknown)
    translated = [normal_form(term.source) for term in matched]
    return spans, [
        run
        for run in runs
        if not any(normal_form(text[run.begin : run.end]) in source for source in translated)
    ]
