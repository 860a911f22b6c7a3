import pytest
from unit.report.fake_run import CONFIG

from dragoman.config import parse_config
from dragoman.diagnosis.learning.bleu_scale import (
    KNOWN,
    grade_of,
    known_test_set,
    place_words,
    scale_words,
)
from dragoman.recipes import find_recipe


def recipe(name):
    return parse_config(find_recipe(name).read_text(), name)


@pytest.mark.parametrize(
    ("name", "split", "known"),
    [
        ("wmt16-en-de", "test", "newstest2014"),
        ("wmt16-en-de", "validation", "newstest2013"),
        ("multi30k", "test", "Multi30k test_2016_flickr"),
        ("multi30k", "validation", None),
        ("demo", "test", None),
    ],
)
def test_test_sets_of_the_recipes_are_known(name, split, known):
    found = known_test_set(recipe(name), split)
    assert (found and found.name) == known


@pytest.mark.parametrize(
    ("files", "languages", "is_known"),
    [
        (("newstest2014.en", "newstest2014.de"), ("en", "de"), True),
        (("newstest2014.de", "newstest2014.en"), ("de", "en"), False),
        (("newstest2014.en", "mine.de"), ("en", "de"), False),
        (("test.en", "test.de"), ("en", "de"), False),
    ],
)
def test_files_are_known_by_both_names_in_the_right_direction(files, languages, is_known):
    settings = {
        "data.test": [{"kind": "text", "source": files[0], "target": files[1]}],
        "data.source_language": languages[0],
        "data.target_language": languages[1],
    }
    assert (known_test_set(parse_config(CONFIG, "x", settings), "test") is not None) == is_known


def test_a_set_of_several_sources_is_not_known():
    source = {"kind": "sacrebleu", "name": "wmt14"}
    config = parse_config(CONFIG, "x", {"data.test": [source, source]})
    assert known_test_set(config, "test") is None


def test_a_named_set_is_known_by_its_own_source():
    sources = [{"kind": "sacrebleu", "name": "wmt14"}, {"kind": "sacrebleu", "name": "wmt13"}]
    config = parse_config(CONFIG, "x", {"data.test": sources})
    known = known_test_set(config, "wmt14")
    assert known is not None
    assert "2014" in known.name
    assert known_test_set(config, "another") is None


def test_known_systems_are_in_order():
    for known in KNOWN:
        scores = [system.bleu for system in known.systems]
        assert scores == sorted(scores)


def test_a_score_has_its_place_among_known_systems():
    (newstest,) = [known for known in KNOWN if known.sacrebleu == ("wmt14", "wmt14/full")][:1]
    assert place_words(20.0, newstest) == "4.6 points below GNMT"
    assert place_words(27.1, newstest) == "about as good as Transformer base"
    assert place_words(26.2, newstest) == "better than ConvS2S"
    assert place_words(30.0, newstest) == "better than Transformer big"
    assert all(figure in scale_words(20.0, newstest) for figure in ("24.6", "27.3", "28.4"))


def test_the_general_scale_rises():
    grades = [grade_of(bleu) for bleu in (5, 11, 25, 35, 45, 55, 97)]
    assert len(set(grades)) == 7
    assert grades[0] == "hardly of any use"
    assert grade_of(11) in scale_words(11, None)
