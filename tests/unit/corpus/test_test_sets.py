import pytest

from dragoman.config import DataSettings, parse_config
from dragoman.corpus.test_sets import LONGEST_NAME, as_name, name_of_file, set_names, sources_of_set
from dragoman.errors import ConfigError

PHRASES = {"kind": "phrasebook", "pairs": 10}


def data(*test):
    return DataSettings(
        source_language="en",
        target_language="de",
        train=[PHRASES],
        validation=[{**PHRASES, "seed": 2}],
        test=list(test),
    )


def text(name, **keys):
    return {"kind": "text", "source": f"{name}.en.gz", "target": f"{name}.de.gz", **keys}


def names(*test):
    return set_names(data(*test).test)


def test_a_single_set_is_called_test_unless_it_has_a_name():
    assert names() == []
    assert names(text("news")) == ["test"]
    assert names(text("news", test_set="mine")) == ["mine"]


def test_several_sets_are_named_after_their_files_or_public_names():
    assert names(
        text("folder/news.2024"),
        {"kind": "tsv", "file": "https://example.org/pairs.tsv.xz"},
        {"kind": "jsonl", "file": "chat.jsonl", "source_key": "a", "target_key": "b"},
        {"kind": "sacrebleu", "name": "wmt14/full"},
        {"kind": "gettext", "folder": "/usr/share/locale"},
        PHRASES,
    ) == ["news.2024", "pairs", "chat", "wmt14-full", "locale", "phrasebook"]


def test_sources_with_the_same_name_are_one_set_and_others_never_are_by_accident():
    assert names(text("a", test_set="both"), text("b"), text("c", test_set="both")) == [
        *("both", "b", "both")
    ]
    assert names(text("a/news"), text("b/news"), text("c/news")) == ["news", "news-2", "news-3"]
    assert names(text("news"), text("x", test_set="news")) == ["news-2", "news"]
    assert names(PHRASES, {**PHRASES, "seed": 5}) == ["phrasebook", "phrasebook-2"]


def test_a_file_that_is_called_like_all_sets_gets_a_number():
    assert names(text("test"), text("validation")) == ["test-1", "validation-1"]


def test_every_name_can_name_a_file():
    odd = names(text("x" * 500), text("  ü"), text("..."), text("a b/c d"))
    assert all(name[0].isalnum() and len(name) <= LONGEST_NAME for name in odd)
    assert len(set(odd)) == 4
    assert odd[3] == "c-d"


def test_the_sources_of_a_set_are_found_by_its_name():
    settings = data(text("a", test_set="both"), text("b"), text("c", test_set="both"))
    assert [source.source for source in sources_of_set(settings, "both")] == [
        *("a.en.gz", "c.en.gz")
    ]
    assert len(sources_of_set(settings, "test")) == 3
    assert sources_of_set(settings, "validation") == list(settings.validation)
    assert sources_of_set(settings, "another") == []


def test_names_of_files_lose_folders_and_endings():
    assert name_of_file("a/b/news.2024.en.gz") == "news.2024"
    assert as_name("wmt14/full") == "wmt14-full"


@pytest.mark.parametrize(
    ("train", "test", "fact"),
    [
        ({"test_set": "news"}, {}, "data.train.0.test_set"),
        ({}, {"test_set": "test"}, "data.test.0.test_set"),
        ({}, {"test_set": "validation"}, "data.test.0.test_set"),
        ({}, {"test_set": "../up"}, "test_set"),
    ],
)
def test_names_that_cannot_be_are_refused_with_their_key(digits, train, test, fact):
    def written(split, keys):
        extra = "".join(f', {key} = "{value}"' for key, value in keys.items())
        return f'{split} = [{{ kind = "text", source = "a.en", target = "a.de"{extra} }}]'

    recipe = digits.read_text(encoding="utf-8")
    lines = [
        written("train", train)
        if line.startswith("train = ")
        else written("test", test)
        if line.startswith("test = ")
        else line
        for line in recipe.splitlines()
    ]
    with pytest.raises(ConfigError) as error:
        parse_config("\n".join(lines), "x")
    assert fact in str(error.value)
