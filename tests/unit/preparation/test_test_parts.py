"""Two test sets of a recipe, prepared."""

import json

import pytest
from digits_language import write_digits
from unit.preparation.prepared import content

from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData


@pytest.fixture
def two_sets(recipe, digits):
    """Returns the recipe with a second test set, with names or without."""
    write_digits(digits.parent, "news", 30, seed=4)

    def named(*names, name="prepared"):
        sources = ", ".join(
            f'{{kind="text",source="{file}.en",target="{file}.de",test_set="{set_name}"}}'
            for file, set_name in zip(("test", "news"), names or ("", ""), strict=True)
        )
        return recipe(f"data.test=[{sources}]", name=name)

    return named


def parts_of(prepared):
    return [(part.test_set, part.pairs) for part in prepared.passport.splits["test"].parts]


def as_of_an_older_version(prepared):
    """Takes the parts from the passport, and the counts of sources from the records."""
    passport = prepared.folder / "data.json"
    content = json.loads(passport.read_text())
    for split in content["splits"].values():
        del split["parts"]
    passport.write_text(json.dumps(content))
    for path in prepared.folder.glob("held-out-*/*.json"):
        record = json.loads(path.read_text())
        del record["pairs_of_sources"]
        path.write_text(json.dumps(record))
    return PreparedData.open(prepared.folder)


def test_every_set_has_its_own_lines(two_sets, digits):
    prepared = prepare(two_sets())
    assert parts_of(prepared) == [("test-1", 40), ("news", 30)]
    assert prepared.passport.test_sets == ["test-1", "news"]
    for name, file in (("test-1", "test"), ("news", "news")):
        sides = prepared.text(name)
        lines = [
            (digits.parent / f"{file}.{side}").read_text().splitlines() for side in ("en", "de")
        ]
        assert list(sides) == lines
    assert len(prepared.text("test")[0]) == 70


def test_sources_of_one_name_are_one_set(two_sets):
    prepared = prepare(two_sets("both", "both"))
    assert prepared.passport.test_sets == ["both"]
    assert prepared.text("both") == prepared.text("test")


def test_another_name_writes_the_passport_anew_and_nothing_else(two_sets):
    first = prepare(two_sets())
    before = {p: p.stat().st_mtime_ns for p in first.folder.rglob("*") if p.is_file()}
    again = prepare(two_sets("old", "new"))
    assert (
        parts_of(again) == parts_of(PreparedData.open(again.folder)) == [("old", 40), ("new", 30)]
    )
    after = {p: p.stat().st_mtime_ns for p in first.folder.rglob("*") if p.is_file()}
    assert [p.name for p in after if after[p] != before.get(p)] == ["data.json"]


def test_data_of_an_older_version_is_read_as_one_set_and_gets_its_names_without_new_shards(
    two_sets,
):
    made = prepare(two_sets())
    shards = content(made)
    old = as_of_an_older_version(made)
    assert old.passport.test_sets == ["test"]
    assert len(old.text("test")[0]) == 70
    assert parts_of(prepare(two_sets())) == [("test-1", 40), ("news", 30)]
    assert content(PreparedData.open(made.folder)) == shards


def test_without_its_text_data_of_an_older_version_stays_as_it_is(two_sets, digits, caplog):
    old = as_of_an_older_version(prepare(two_sets()))
    (digits.parent / "news.en").unlink()
    assert prepare(two_sets()).passport == old.passport
    assert "news.en" in caplog.text


def test_a_single_set_is_prepared_and_kept_as_by_an_older_version(recipe):
    old = as_of_an_older_version(prepare(recipe()))
    written_at = (old.folder / "data.json").stat().st_mtime_ns
    assert prepare(recipe()).passport == old.passport
    assert (old.folder / "data.json").stat().st_mtime_ns == written_at
