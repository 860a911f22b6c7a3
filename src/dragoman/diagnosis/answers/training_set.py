"""How big is the training set? The verdict is its size: "1,880 MB, 4,524,868 lines"."""

import shlex
from dataclasses import replace

from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, megabytes, percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.shards.passport import Passport, SplitRecord

MANY_DROPPED = 0.3
"""Of the pairs: a larger share of dropped ones deserves a look at the reasons."""


def answer(run: RunFacts) -> Finding:
    passport = run.record.passport
    train = passport.splits.get("train") if passport else None
    if passport is None or train is None:
        why = "the run has no manifest.json that tells of its data: it has not begun"
        return replace(unknown(why), plain="Nobody can tell yet: the training has not begun.")
    kept_bytes = train.source.bytes + train.target.bytes
    verdict = f"{megabytes(kept_bytes)}, {train.pairs_kept:,} lines"
    sentence = _sentence(passport, train, kept_bytes)
    evidence = _evidence(passport, train, kept_bytes)
    plain = f"The model learns from {_about(train.pairs_kept)} pairs of sentences."
    return Finding(verdict, "high", sentence, evidence, _advice(run, train), plain)


def _about(pairs: int) -> str:
    """Returns two digits: about 4.5 million."""
    if pairs >= 1_000_000:
        return (
            f"about {pairs / 1e6:.2g} million"
            if pairs < 1e8
            else f"about {pairs // 10**6:,} million"
        )
    rounded = round(pairs, 1 - len(str(pairs)) + 1)
    return f"about {rounded:,}" if pairs >= 1000 else f"{pairs:,}"


def _sentence(passport: Passport, train: SplitRecord, kept_bytes: int) -> str:
    source, target = passport.source_language, passport.target_language
    weights = ""
    if train.pairs_per_epoch != train.pairs_kept:
        weights = f" With the weights of the sources an epoch has {train.pairs_per_epoch:,} pairs."
    dropped = train.pairs_in - train.pairs_kept
    cleaning = "Cleaning dropped none."
    if dropped > 0:
        reasons = sorted(train.dropped.items(), key=lambda item: (-item[1], item[0]))
        named = listed([f"{number:,} {reason}" for reason, number in reasons[:3] if number])
        cleaning = (
            f"Cleaning dropped {dropped:,} of {count(train.pairs_in, 'pair')} "
            f"({percent(dropped / train.pairs_in)})" + (f": {named}." if named else ".")
        )
    return (
        f"{train.pairs_kept:,} lines on each side, {megabytes(kept_bytes)} of text: "
        f"{megabytes(train.source.bytes)} {source} and {megabytes(train.target.bytes)} {target}, "
        f"which are {train.source.tokens:,} and {train.target.tokens:,} tokens an epoch. "
        f"{cleaning}{weights}"
    )


def _evidence(passport: Passport, train: SplitRecord, kept_bytes: int) -> list[Figure]:
    input_bytes = sum(file.bytes for file in passport.inputs)
    files = count(len(passport.inputs), "file")
    on_disk = f"{files} as they lie on disk, with those of validation and test"
    return [
        Figure("text, both sides", kept_bytes, "bytes", note="after cleaning, line feeds included"),
        Figure(f"text, {passport.source_language}", train.source.bytes, "bytes"),
        Figure(f"text, {passport.target_language}", train.target.bytes, "bytes"),
        Figure("lines before cleaning", train.pairs_in, "lines"),
        Figure("lines after cleaning", train.pairs_kept, "lines"),
        Figure("pairs an epoch", train.pairs_per_epoch, "lines"),
        Figure(f"tokens, {passport.source_language}", train.source.tokens, "tokens"),
        Figure(f"tokens, {passport.target_language}", train.target.tokens, "tokens"),
        Figure("input files", input_bytes, "bytes", note=on_disk),
        *(Figure(f"dropped: {why}", number, "lines") for why, number in train.dropped.items()),
    ]


def _advice(run: RunFacts, train: SplitRecord) -> list[Advice]:
    dropped = train.pairs_in - train.pairs_kept
    if dropped <= MANY_DROPPED * train.pairs_in:
        return []
    worst = max(train.dropped, key=lambda reason: train.dropped[reason], default="")
    config = shlex.quote(str(run.record.directory.config))
    return [
        Advice(
            f"{percent(dropped / train.pairs_in)} of the pairs were dropped, most as {worst!r}: "
            "see some of them before you trust the data.",
            f"dragoman prepare {config} --explain 3",
        )
    ]
