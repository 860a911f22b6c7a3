import itertools
import json

import pytest
import torch

from dragoman.batches.merges import proto_fields
from dragoman.export.sentence_boundaries import (
    AFTER,
    BEFORE,
    boundary_model,
    vocabulary,
    weights,
)


def sentences(text):
    """What the network says, computed by torch."""
    ids = {character: number for number, character in enumerate(vocabulary())}
    classes, window, bias, output, output_bias = map(torch.from_numpy, weights(vocabulary()))
    characters = classes[[ids.get(character, 1) for character in text]].T[None]
    padded = torch.nn.functional.pad(characters, (BEFORE, AFTER))
    hidden = torch.nn.functional.conv1d(padded, window, bias).relu()[0]
    ends = (output @ hidden + output_bias[:, None]).argmax(0) == 2
    cuts = [0, *(number + 1 for number in ends.nonzero().flatten().tolist()), len(text)]
    parts = [text[begin:end].strip() for begin, end in itertools.pairwise(cuts)]
    return [part for part in parts if part]


@pytest.mark.parametrize(
    "expected",
    [
        ["The old baker sleeps.", "Is it cold?", "Yes!", "Good"],
        ["Dr. Smith and Mrs. J. Fox came on May 3. or so."],
        ["Am 3. Mai kam er z. B. mit dem Zug.", "Gut."],
        ['He said: "No."', "Then he left...", "(Yes.)", "NATO met.", "End"],
        [
            "It cost 3.5 million",
        ],
        ["Он пришёл.", "Мы ушли!"],
    ],
)
def test_sentences_end_where_they_should(expected):
    assert sentences(" ".join(expected)) == expected


def test_a_small_letter_goes_on_and_chinese_needs_no_spaces():
    assert sentences("Yahoo! is a company. Good") == ["Yahoo! is a company.", "Good"]
    assert sentences("他来了。我们回家！」好吗") == ["他来了。", "我们回家！」", "好吗"]


def test_the_model_carries_its_vocabulary():
    model = [value for number, value in proto_fields(boundary_model("en")) if number == 14]
    entries = {}
    for entry in model:
        fields = dict(proto_fields(entry))
        entries[fields[1].decode()] = fields[2].decode()
    units = json.loads(entries["vocab"])
    assert units["_unit2id"]["<PAD>"] == 0
    assert units["_unit2id"]["<UNK>"] == 1
    assert units["_id2unit"][units["_unit2id"]["é"]] == "é"
    assert entries["lang_code"] == "en"
