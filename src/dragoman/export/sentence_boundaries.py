"""A sentence splitter for Argos Translate: rules as the weights of a small convolutional network.

Argos Translate 1.10 and later splits text with MiniSBD, which runs an ONNX model found in the
package, and would download one otherwise. This one is written and not learned, so that a package
needs neither a network nor anyone else's model. It knows the rules of `decoding.splitting`: a
sentence ends with a mark, closing quotes and a space, unless a small letter follows, or the mark is
the period of a number or an abbreviation. Capital and consonants alone make an abbreviation here:
German nouns have capitals too.

Characters become vectors of classes; each hidden unit is a conjunction over a window of characters,
Relu(sum - (number of conditions - 1)); a sentence ends where their sum is at least one.
"""

import json
import sys
import unicodedata
from typing import NamedTuple

import numpy as np

from dragoman.export.onnx_file import FLOAT, INT64, Array, model_bytes, node, value_info

# ruff: noqa: RUF001 - marks that look alike are those of different scripts
_PADDING, _OTHER = 0, 1
_PERIOD, _MARKS, _WIDE_MARKS = ".", "!?…؟۔।", "。！？"
_CLOSING = "\"')]”’»«」』）"
_SPACE = " "
_VOWELS = "aeiouyæœøаеиоуыэюяієαεηιουω"

PERIOD, MARK, WIDE_MARK, CLOSING, SPACE, LETTER, UPPER, LOWER, VOWEL = range(9)
BEFORE, AFTER = 4, 2
"""Characters of the window."""


class Condition(NamedTuple):
    """A weight for a class of characters, `at` so many characters after the one in question."""

    at: int
    kind: int
    weight: float = 1.0


_FOLLOWED = (Condition(1, SPACE), Condition(2, LOWER, -1))
# Conditions, the bias, and what the unit counts.
_UNITS: tuple[tuple[tuple[Condition, ...], float, float], ...] = (
    ((Condition(0, MARK), *_FOLLOWED), -1, 1),
    # A period after two letters; after one, or after a digit, it is an abbreviation or a number.
    (
        (Condition(0, PERIOD), Condition(-1, LETTER), Condition(-2, LETTER), *_FOLLOWED),
        -3,
        1,
    ),
    # Two or three letters without a vowel that begin with a capital: Dr., Mrs.
    (
        (
            *(Condition(0, PERIOD), Condition(-2, UPPER), Condition(-3, LETTER, -1)),
            Condition(-1, VOWEL, -1),
        ),
        -1,
        -2,
    ),
    (
        (
            *(Condition(0, PERIOD), Condition(-1, LETTER), Condition(-2, LETTER)),
            *(Condition(-3, UPPER), Condition(-4, LETTER, -1)),
            *(Condition(-1, VOWEL, -1), Condition(-2, VOWEL, -1)),
        ),
        -3,
        -2,
    ),
    # A period behind a bracket or more periods.
    (
        (Condition(0, PERIOD), Condition(-1, CLOSING), Condition(-1, PERIOD), *_FOLLOWED),
        -2,
        1,
    ),
    # Closing quotes behind a mark.
    (
        (Condition(0, CLOSING), Condition(-1, MARK), Condition(-1, PERIOD), *_FOLLOWED),
        -2,
        1,
    ),
    # Chinese and Japanese have no spaces.
    (
        (Condition(0, WIDE_MARK), Condition(1, WIDE_MARK, -1), Condition(1, CLOSING, -1)),
        0,
        1,
    ),
    ((Condition(0, CLOSING), Condition(-1, WIDE_MARK), Condition(1, CLOSING, -1)), -1, 1),
)


def boundary_model(language: str) -> bytes:
    """Returns the bytes of an ONNX model in the form that MiniSBD loads."""
    characters = vocabulary()
    classes_VK, window_HKW, bias_H, output_CH, output_bias_C = weights(characters)
    size = BEFORE + 1 + AFTER
    nodes = [
        node("Gather", ["classes", "units"], "characters_BNK", axis=0),
        node("Transpose", ["characters_BNK"], "characters_BKN", perm=[0, 2, 1]),
        node(
            *("Conv", ["characters_BKN", "window", "bias"], "sums"),
            kernel_shape=[size],
            pads=[BEFORE, AFTER],
        ),
        node("Relu", ["sums"], "hidden"),
        node("Conv", ["hidden", "output", "output_bias"], "scores_BCN", kernel_shape=[1]),
        node("Transpose", ["scores_BCN"], "scores", perm=[0, 2, 1]),
    ]
    tensors = {
        "classes": classes_VK,
        "window": window_HKW,
        "bias": bias_H,
        "output": output_CH[:, :, None],
        "output_bias": output_bias_C,
    }
    units = ["<PAD>", "<UNK>", *list(characters)[2:]]
    return model_bytes(
        nodes,
        tensors,
        [value_info("units", INT64, ["B", "N"]), value_info("features", FLOAT, ["B", "N", "F"])],
        [value_info("scores", FLOAT, ["B", "N", 3])],
        {
            "lang_code": language,
            "config": json.dumps({"feat_funcs": [], "batch_size": 16, "max_seqlen": 1000}),
            "vocab": json.dumps(
                {
                    "lang": language,
                    "_unit2id": {unit: number for number, unit in enumerate(units)},
                    "_id2unit": units,
                }
            ),
        },
    )


def vocabulary() -> dict[str, tuple[int, ...]]:
    """Returns the classes of each character that has an id, in the order of the ids.

    A character without an id counts as a letter: of a script without capitals, most probably.
    """
    found: dict[str, tuple[int, ...]] = {"<PAD>": (), "<UNK>": (LETTER,)}
    for text, kind in (
        (_PERIOD, PERIOD),
        (_MARKS, MARK),
        (_WIDE_MARKS, WIDE_MARK),
        (_CLOSING, CLOSING),
        (_SPACE, SPACE),
    ):
        found |= dict.fromkeys(text, (kind,))
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if character in found or category == "Cs":
            continue
        if category == "Lu":
            found[character] = (LETTER, UPPER)
        elif category == "Ll":
            is_vowel = unicodedata.normalize("NFD", character)[0] in _VOWELS
            found[character] = (LETTER, LOWER, VOWEL) if is_vowel else (LETTER, LOWER)
        elif category[0] in "NPSZ" and code < 0x3000:
            found[character] = ()
    return found


def weights(
    characters: dict[str, tuple[int, ...]],
) -> tuple[Array, Array, Array, Array, Array]:
    """Returns classes by character, window and bias of the units, and what they count."""
    classes_VK = np.zeros((len(characters), 9), np.float32)
    for row, kinds in zip(classes_VK, characters.values(), strict=True):
        row[list(kinds)] = 1
    window_HKW = np.zeros((len(_UNITS), 9, BEFORE + 1 + AFTER), np.float32)
    bias_H = np.zeros(len(_UNITS), np.float32)
    output_CH = np.zeros((3, len(_UNITS)), np.float32)
    for number, (conditions, bias, counts) in enumerate(_UNITS):
        for condition in conditions:
            window_HKW[number, condition.kind, BEFORE + condition.at] = condition.weight
        bias_H[number], output_CH[2, number] = bias, counts
    # Inside a sentence, end of a word (never), end of a sentence.
    return classes_VK, window_HKW, bias_H, output_CH, np.array([0.5, -9, 0], np.float32)
