"""Whether both learned from the same text, and how much of it there was."""

from dragoman.comparison.rows import ComparedRun, Group, Row, differing, measured, row
from dragoman.shards.passport import Passport

HASH_DIGITS = 12
_UNITS = {
    "pairs": "lines",
    "source text": "bytes",
    "target text": "bytes",
    "source tokens": "tokens",
    "target tokens": "tokens",
}


def data_of(a: ComparedRun, b: ComparedRun) -> Group:
    first, second = a.facts.record.passport, b.facts.record.passport
    if first is None or second is None:
        missing = a if first is None else b
        return Group(
            "Data",
            [],
            [
                f"Not known, because {missing.facts.record.root} has no manifest that this "
                "version can read."
            ],
        )
    if first.content_hash == second.content_hash:
        same = f"Both learned from the same data, hash {first.content_hash[:HASH_DIGITS]}."
        return Group("Data", [], [same])
    return Group("Data", differing(_rows(first, second)), [_why_it_matters(first, second)])


def _rows(first: Passport, second: Passport) -> list[Row]:
    rows = [
        row("data hash", first.content_hash[:HASH_DIGITS], second.content_hash[:HASH_DIGITS]),
        row(
            "tokenizer hash",
            first.tokenizer_sha256[:HASH_DIGITS],
            second.tokenizer_sha256[:HASH_DIGITS],
        ),
        measured("vocabulary", first.vocabulary, second.vocabulary, "pieces"),
    ]
    for split in dict.fromkeys([*first.splits, *second.splits]):
        one, other = _sizes(first, split), _sizes(second, split)
        rows += [
            measured(f"{split}: {what}", one.get(what), other.get(what), unit)
            for what, unit in _UNITS.items()
        ]
    return rows


def _sizes(passport: Passport, split: str) -> dict[str, int]:
    """Empty: there is no such split."""
    record = passport.splits.get(split)
    if record is None:
        return {}
    return {
        "pairs": record.pairs_kept,
        "source text": record.source.bytes,
        "target text": record.target.bytes,
        "source tokens": record.source.tokens,
        "target tokens": record.target.tokens,
    }


def _why_it_matters(first: Passport, second: Passport) -> str:
    if first.tokenizer_sha256 != second.tokenizer_sha256:
        return (
            "The tokenizers differ, so losses per token are not comparable; BLEU and chrF of the "
            "same sentences are."
        )
    return "The tokenizers are the same, so losses on the same sentences can be compared."
