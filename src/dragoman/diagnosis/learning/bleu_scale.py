"""Is this BLEU good? What known systems reach on known test sets, and a scale for all others. Pure.

BLEU compares systems on one test set alone: another text of the same languages gives another score.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.config import Config, CorpusSource, SacrebleuSource, TextSource
from dragoman.corpus.test_sets import sources_of_set


class KnownSystem(NamedTuple):
    name: str
    bleu: float
    source: str


class KnownTestSet(NamedTuple):
    name: str
    languages: str
    sacrebleu: tuple[str, ...]
    """Its names in sacreBLEU."""
    file_name: str
    """A pattern that the names of its files match."""
    systems: tuple[KnownSystem, ...]
    """The lowest first."""
    note: str = ""


_TRANSFORMER = "Vaswani et al. 2017"
_TOKENIZED = "published on tokenized text, which gives up to about one point more than sacreBLEU"

KNOWN: Sequence[KnownTestSet] = (
    KnownTestSet(
        "newstest2014",
        "en-de",
        ("wmt14", "wmt14/full"),
        r"newstest[-_]?2014",
        (
            KnownSystem("GNMT", 24.6, "Wu et al. 2016"),
            KnownSystem("ConvS2S", 25.2, "Gehring et al. 2017"),
            KnownSystem("Transformer base", 27.3, _TRANSFORMER),
            KnownSystem("Transformer big", 28.4, _TRANSFORMER),
        ),
        _TOKENIZED,
    ),
    KnownTestSet(
        "newstest2014",
        "en-fr",
        ("wmt14", "wmt14/full"),
        r"newstest[-_]?2014",
        (
            KnownSystem("Transformer base", 38.1, _TRANSFORMER),
            KnownSystem("ConvS2S", 40.5, "Gehring et al. 2017"),
            KnownSystem("Transformer big", 41.8, _TRANSFORMER),
        ),
        _TOKENIZED,
    ),
    KnownTestSet(
        "newstest2013",
        "en-de",
        ("wmt13",),
        r"newstest[-_]?2013",
        (
            KnownSystem("Transformer base", 25.8, _TRANSFORMER),
            KnownSystem("Transformer big", 26.4, _TRANSFORMER),
        ),
        _TOKENIZED,
    ),
    KnownTestSet(
        "Multi30k test_2016_flickr",
        "en-de",
        (),
        r"(test|flickr).?2016|2016.?flickr",
        (
            KnownSystem("text-only Transformers, the weaker ones", 38.0, "Multi30k papers"),
            KnownSystem("text-only Transformers, the better ones", 41.0, "Multi30k papers"),
        ),
        "published on tokenized text, mostly in lower case",
    ),
)

_SCALE: Sequence[tuple[float, str]] = (
    (10.0, "hardly of any use"),
    (20.0, "the gist is hard to get"),
    (30.0, "the gist is clear, with many errors"),
    (40.0, "understandable to good"),
    (50.0, "good to high quality"),
    (60.0, "very good"),
)
_BEYOND = "higher than systems reach on news text"


def grade_of(bleu: float) -> str:
    """Returns what translations of such a score are mostly like."""
    return next((words for below, words in _SCALE if bleu < below), _BEYOND)


def known_test_set(config: Config, split: str) -> KnownTestSet | None:
    """Returns the test set that a split of the recipe is; None: it is none of the known ones."""
    data = config.data
    sources = sources_of_set(data, split)
    if len(sources) != 1:
        return None
    languages = sources[0].languages or f"{data.source_language}-{data.target_language}"
    return next(
        (known for known in KNOWN if known.languages == languages and _is_it(sources[0], known)),
        None,
    )


def scale_words(bleu: float, known: KnownTestSet | None) -> str:
    """Returns a sentence that tells whether a score is good."""
    if known is None:
        return (
            f"On a rough scale, {bleu:.0f} BLEU is: {grade_of(bleu)} (below 10 hardly of any use, "
            "20 to 30 the gist, 30 to 40 understandable to good, above 50 very good); it depends "
            "much on the text, and only scores on the same test set can be compared."
        )
    systems = ", ".join(f"{s.name} {s.bleu:.1f} ({s.source})" for s in known.systems)
    caveat = f"; {known.note}" if known.note else ""
    return f"Known systems on {known.name}, {known.languages}: {systems}{caveat}."


def place_words(bleu: float, known: KnownTestSet) -> str:
    """Returns where a score stands among the known systems: as good as Transformer base."""
    below = [system for system in known.systems if system.bleu <= bleu + 0.5]
    if not below:
        distance = known.systems[0].bleu - bleu
        return f"{distance:.1f} points below {known.systems[0].name}"
    best = below[-1]
    if bleu > best.bleu + 0.5:
        return f"better than {best.name}"
    return f"about as good as {best.name}"


def _is_it(source: CorpusSource, known: KnownTestSet) -> bool:
    if isinstance(source, SacrebleuSource):
        return source.name in known.sacrebleu
    if isinstance(source, TextSource):
        return all(re.search(known.file_name, name) for name in (source.source, source.target))
    return False
