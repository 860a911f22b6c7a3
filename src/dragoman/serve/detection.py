"""Which of the served languages a text is written in: a text comes in, languages go out.

Compact Language Detector 2 answers where its package is installed and knows the text. Else scripts
and frequent short words are counted, which is enough to distinguish a few languages in a sentence
or two, and says little about single words.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.corpus.cleaning import share_in_script

try:
    import pycld2
except ImportError:
    pycld2 = None

MOST_CHARACTERS = 5000
"""Of a text that are looked at."""
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPT_ALONE = 10.0
"""Percent for a language of which no more is found than its script."""

# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
# fmt: off
_FREQUENT = {
    "bg": "и на да се в за не от с че е са по като което",
    "ca": "i de la el els les que en un una per amb és no del",
    "cs": "a se v na je že o do i pro jsou jako ale tak by",
    "da": "og i at det er en til af på for med der ikke den som",
    "de": "der die das und ist nicht ein eine zu mit den von auf für wir ich",
    "en": "the of and to in is that it was for on are with this you",
    "es": "de la que el en y los se del las un por con no una es",
    "et": "ja on ei see et oma kui ta aga ka mis oli ning",
    "fi": "ja on ei se että oli hän mutta ovat kun joka tai myös",
    "fr": "de la le et les des en un une du que est dans qui pas pour je",
    "hr": "i je u na se da su za od koji nije kao ili što",
    "hu": "a az és hogy nem is egy van volt meg csak de ez",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam adalah pada",
    "it": "di e il la che è un in per non una del con sono le si",
    "lt": "ir yra kad tai su į iš buvo ne kaip bet apie",
    "lv": "un ir ka ar no par tas kas bija ne uz lai",
    "nb": "og i det er en til på for som med av ikke den at",
    "nl": "de het een en van in is dat op te zijn niet voor met",
    "pl": "i w nie na się z do to że jest jak za po ale",
    "pt": "de a o que e do da em um para é com não uma os no",
    "ro": "și de la a în cu pe o este nu că un din care",
    "ru": "и в не на что с он я это как по но из у за",
    "sk": "a je v na sa že to ako pre nie by ale tak",
    "sl": "in je v na da se so za ni ki kot pa bi",
    "sv": "och i att det är en som på för med av inte den till",
    "tr": "ve bir bu da de için ile çok ne gibi daha var olarak",
    "uk": "і в не на що з він я це як до але та у за",
    "vi": "và của là có không một được cho trong người những các",
}
# fmt: on
_FREQUENT_WORDS = {code: frozenset(words.split()) for code, words in _FREQUENT.items()}


class Detected(NamedTuple):
    language: str
    confidence: float
    """0 to 100."""


def detect(text: str, languages: Sequence[str]) -> list[Detected]:
    """Returns those of the languages that the text may be in, the most likely first.

    At least one is returned, with a confidence of 0 if nothing speaks for any of them.
    """
    text = text[:MOST_CHARACTERS]
    found = _identified(text, languages) or _counted(text, languages)
    found.sort(key=lambda each: -each.confidence)
    return found or [Detected(languages[0], 0.0)]


def _identified(text: str, languages: Sequence[str]) -> list[Detected]:
    """Asks Compact Language Detector 2."""
    if pycld2 is None:
        return []
    printable = "".join(character if character.isprintable() else " " for character in text)
    try:
        _, _, details = pycld2.detect(printable, isPlainText=True, bestEffort=True)
    except pycld2.error:  # text that it cannot parse
        return []
    served = {_language(code): code for code in languages}
    return [
        Detected(served[_language(code)], float(percent))
        for _, code, percent, _ in details
        if percent and _language(code) in served
    ]


def _counted(text: str, languages: Sequence[str]) -> list[Detected]:
    words = [word.casefold() for word in _WORD.findall(text)]
    found = []
    for code in languages:
        in_script = share_in_script(text, code) or 0.0
        frequent = _FREQUENT_WORDS.get(_language(code), frozenset())
        of_language = sum(word in frequent for word in words) / max(1, len(words))
        # About every third word of a text is one of these, which gives 50 %.
        likely = 200 * of_language / (1 + of_language)
        confidence = round(in_script * max(likely, _SCRIPT_ALONE), 1)
        if confidence:
            found.append(Detected(code, confidence))
    return found


def _language(code: str) -> str:
    """Returns the code without script and country, as all have it: iw is an old one of he."""
    language = re.split("[-_]", code)[0].lower()
    return {"iw": "he", "no": "nb"}.get(language, language)
