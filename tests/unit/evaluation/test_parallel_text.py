import gzip

import pytest

from dragoman.config import parse_config
from dragoman.errors import UserError
from dragoman.evaluation.parallel_text import from_files, from_table, of_recipe
from dragoman.preparation import prepare


@pytest.fixture
def files(tmp_path):
    source, reference = tmp_path / "news.2024.en.gz", tmp_path / "news.2024.de"
    source.write_bytes(gzip.compress(b"one\ntwo\n"))
    reference.write_text("eins\nzwei\n", encoding="utf-8")
    return source, reference


def test_two_files_are_read_line_by_line_and_named_by_the_first(digits_config, files):
    text = from_files(digits_config, *map(str, files))
    assert (text.name, text.sources, text.references) == (
        "news.2024",
        ["one", "two"],
        ["eins", "zwei"],
    )
    assert from_files(digits_config, *map(str, files), name="mine").name == "mine"


def test_columns_of_a_table_may_stand_in_any_order(digits_config, tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("7\teins\tone\n8\tzwei\ttwo\n", encoding="utf-8")
    text = from_table(digits_config, str(table), (3, 2))
    assert (text.name, text.sources, text.references) == (
        "pairs",
        ["one", "two"],
        ["eins", "zwei"],
    )


def test_the_names_of_the_recipe_are_taken(digits_config, files):
    with pytest.raises(UserError, match="--name"):
        from_files(digits_config, *map(str, files), name="test")


@pytest.mark.parametrize("name", ["../test", "a/b", "", ".hidden", "x" * 200])
def test_a_name_that_is_no_file_name_is_refused(digits_config, files, name, tmp_path):
    source = tmp_path / ".en"
    source.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(UserError, match="--name"):
        from_files(digits_config, str(source), str(files[1]), name=name)


def test_a_missing_reference_is_named_by_its_line(digits_config, files):
    files[1].write_text("eins\n\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 2"):
        from_files(digits_config, *map(str, files))


def test_sides_of_different_length_are_refused(digits_config, files):
    files[1].write_text("eins\n", encoding="utf-8")
    with pytest.raises(UserError, match="ends after line 1"):
        from_files(digits_config, *map(str, files))


def test_a_recipe_without_test_data_is_explained(digits):
    text = digits.read_text(encoding="utf-8").replace("test = [", "# test = [")
    without = parse_config(text, "x", [f"data.prepared={digits.parent}/other"])
    prepare(without)
    with pytest.raises(UserError, match=r"add \[\[data.test\]\]"):
        of_recipe(without, "test")


def test_sets_of_the_recipe_that_were_prepared_as_one_are_explained(digits_config, digits):
    prepare(digits_config)
    text = digits.read_text(encoding="utf-8").replace(
        '"test.de" }]', '"test.de", test_set = "mine" }]'
    )
    named = parse_config(text, "x")
    with pytest.raises(UserError, match="dragoman prepare"):
        of_recipe(named, "mine")
    prepare(named)
    (mine,) = of_recipe(named, "test")
    assert (mine.name, len(mine.sources), mine.test_place) == ("mine", 40, 1)
    assert of_recipe(named, "validation")[0].test_place is None
