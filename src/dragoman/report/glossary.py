"""Jargon that answers use, each word with what it means, to stand beside them. Pure."""

import re
from collections.abc import Mapping

from dragoman.report.content import Answer

GLOSSARY: Mapping[str, str] = {
    "all-reduce": "the exchange in which all workers add up their gradients",
    "BLEU": "how much translations resemble those of people, from 0 to 100",
    "chrF": "like BLEU, in letters instead of words",
    "exposed": "not hidden behind computing: all workers wait for it",
    "label smoothing": "training that keeps the model from being too sure of a word",
    "latency": "how long the smallest message is on its way",
    "MFU": "the share of the device's peak speed that the model's own arithmetic uses",
    "Muon": "a way of training that changes each matrix of the model as a whole",
    "nats": "the unit of losses: 0.1 nats less means that the right next piece is about 10 % more "
    "probable",
    "Noam": "a learning rate that rises for the warm-up and then falls like 1 / sqrt(step)",
    "perplexity": "among how many pieces the model hesitates, in the mean",
    "rank": "one worker of the run, counted from 0",
    "ring": "workers that pass sums on to their neighbors until each has all of them",
    "Schedule-Free": "a way of training that averages the model over all steps instead of making "
    "smaller and smaller ones",
    "straggler": "a worker that the others wait for",
}

_WORD = re.compile(
    r"\b(" + "|".join(map(re.escape, sorted(GLOSSARY, key=len, reverse=True))) + r")s?\b",
    re.IGNORECASE,
)
_BY_LOWER = {word.lower(): word for word in GLOSSARY}


def words_in(answer: Answer) -> list[tuple[str, str]]:
    """Returns the jargon of an answer in the order in which a reader meets it, explained."""
    texts = [answer.verdict, answer.plain, answer.sentence]
    texts += [advice.text for advice in answer.advice]
    texts += [f"{figure.name} {figure.unit} {figure.note}" for figure in answer.evidence]
    met = dict.fromkeys(_BY_LOWER[found[1].lower()] for found in _WORD.finditer("\n".join(texts)))
    return [(word, GLOSSARY[word]) for word in met]
