import gzip
import json
import os
import shutil

import pytest

from dragoman.errors import UserError
from dragoman.preparation import slices
from dragoman.preparation.cleaned import clean_tasks
from dragoman.preparation.plan import make_plan
from dragoman.preparation.slices import Share, count_slices, read_slice
from dragoman.preparation.task import FileRange, Given


def pairs_of(config, is_wanted=lambda number: True):
    """Number -> pairs, of the wanted slices."""
    data, index = config.data, make_plan(config).index
    return {
        part.number: read_slice(part, data.train[part.source_number], data)
        for part in slices.slices(data, index, is_wanted)
    }


def joined(parts):
    return [pair for pairs in parts.values() for pair in pairs]


def count(config):
    return count_slices(config.data, make_plan(config).index)


def test_slices_are_counted_alike(recipe, monkeypatch):
    monkeypatch.setattr(slices, "PAIRS_PER_SLICE", 100)
    assert count(recipe()) == 8
    assert list(pairs_of(recipe(), Share(1, 3).has)) == [1, 4, 7]
    monkeypatch.setattr(slices, "PAIRS_PER_SLICE", 799)
    assert count(recipe()) == 2


@pytest.mark.parametrize("characters", [1000, 5000])
def test_a_slice_of_very_long_lines_has_fewer_of_them(recipe, monkeypatch, characters):
    whole = joined(pairs_of(recipe()))
    monkeypatch.setattr(slices, "CHARACTERS_PER_SLICE", characters)
    parts = pairs_of(recipe())
    assert joined(parts) == whole
    assert list(parts) == list(range(count(recipe())))
    longest = max(len(pair.source) + len(pair.target) for pair in whole)
    assert len(parts) > 1
    for pairs in parts.values():
        size = sum(len(pair.source) + len(pair.target) for pair in pairs)
        assert size <= characters + longest


def test_small_corpora_have_slices_for_several_cores_and_none_outgrows_the_largest():
    sizes, before = [], 0
    while before < 5_000_000:
        sizes.append(slices.pairs_after(before))
        before += sizes[-1]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[5], sizes[-1]) == (25_000, 25_000, 100_000)
    assert len(sizes) < 70
    for place, size in enumerate(sizes[8:], start=8):
        assert size <= sum(sizes[:place]) / 8


def test_slices_that_grow_are_the_same_for_text_that_is_read_from_its_start(
    recipe, digits, monkeypatch
):
    monkeypatch.setattr(slices, "FIRST_PAIRS", 10)
    whole = pairs_of(recipe())
    sizes = [len(pairs) for pairs in whole.values()]
    assert sizes[:8] == [10] * 8
    assert sizes[-2] > 50
    assert sum(sizes) == 800
    assert pairs_of(compressed(digits, recipe)) == whole


def compressed(digits, recipe, name="compressed"):
    for side in ("en", "de"):
        content = (digits.parent / f"train.{side}").read_bytes()
        (digits.parent / f"train.{side}.gz").write_bytes(gzip.compress(content))
    files = '{kind="text",source="train.en.gz",target="train.de.gz"}'
    return recipe(f"data.train=[{files}]", name=name)


@pytest.mark.parametrize("characters", [2_000_000, 1000])
@pytest.mark.usefixtures("small_slices")
def test_text_that_is_read_from_its_start_has_the_same_slices(
    recipe, digits, monkeypatch, characters
):
    """They are as versions had them that read every source from its start."""
    monkeypatch.setattr(slices, "CHARACTERS_PER_SLICE", characters)
    assert pairs_of(recipe()) == pairs_of(compressed(digits, recipe))


@pytest.mark.usefixtures("small_slices")
def test_a_slice_of_plain_lines_is_ranges_of_bytes_and_other_text_travels(recipe, digits):
    data, index = recipe().data, make_plan(recipe()).index
    parts = list(slices.slices(data, index, Share(2, 3).has))
    for part in parts:
        assert [type(text) for text in part.texts] == [FileRange, FileRange]
        assert part.first_line == 1 + 100 * part.number
    other = compressed(digits, recipe)
    (part, *_) = slices.slices(other.data, make_plan(other).index, Share(2, 3).has)
    assert [type(text) for text in part.texts] == [Given, Given]


@pytest.mark.usefixtures("small_slices")
def test_rows_and_objects_are_read_by_ranges_too(recipe, digits):
    whole = pairs_of(recipe())
    for name, line in {
        "train.tsv": "\t".join,
        "train.jsonl": lambda pair: json.dumps({"en": pair[0], "de": pair[1]}),
    }.items():
        text = "".join(f"{line(pair)}\n" for pair in joined(whole))
        (digits.parent / name).write_text(text, encoding="utf-8")
    rows = recipe('data.train=[{kind="tsv",file="train.tsv"}]', name="tsv")
    keys = 'source_key="en",target_key="de"'
    objects = recipe(f'data.train=[{{kind="jsonl",file="train.jsonl",{keys}}}]', name="jsonl")
    assert pairs_of(rows) == pairs_of(objects) == whole
    swapped = recipe(
        'data.train=[{kind="text",source="train.de",target="train.en",languages="de-en"}]',
        name="swapped",
    )
    assert pairs_of(swapped) == whole


@pytest.mark.usefixtures("small_slices")
def test_errors_in_a_part_name_the_line_of_the_file(recipe, digits):
    path = digits.parent / "train.de"
    lines = path.read_bytes().split(b"\n")
    lines[450] = b"\xff"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(UserError, match=r"train\.de, line 451: not UTF-8"):
        pairs_of(recipe(), lambda number: number == 4)
    assert pairs_of(recipe(), lambda number: number == 5)


def test_sides_of_unequal_length_are_refused_with_both_files(recipe, digits):
    with (digits.parent / "train.en").open("a") as file:
        file.write("one\ntwo")
    with pytest.raises(UserError, match=r"train\.de ends after line 800, but .*train\.en conti"):
        pairs_of(recipe())


def test_files_without_a_line_are_refused(recipe, digits):
    for side in ("en", "de"):
        (digits.parent / f"train.{side}").write_bytes(b"")
    with pytest.raises(UserError, match="has no pairs in en and de"):
        pairs_of(recipe())


def test_lines_are_counted_once(recipe, digits):
    config = recipe()
    stage = make_plan(config).index
    before = pairs_of(config)
    written = stage.file(0, "json").stat().st_mtime_ns
    assert pairs_of(config) == before
    assert stage.file(0, "json").stat().st_mtime_ns == written
    shutil.rmtree(stage.folder)
    assert pairs_of(config) == before


def test_a_file_that_became_shorter_is_refused(recipe, digits):
    config = recipe()
    part = next(slices.slices(config.data, make_plan(config).index, lambda number: True))
    (digits.parent / "train.en").write_bytes(b"one\n")
    with pytest.raises(UserError, match=r"train\.en: changed while it was read"):
        read_slice(part, config.data.train[0], config.data)


def do_all(tasks):
    for task in tasks:
        task.keep(task.do())


def change(path):
    """As an editor does that replaces a line by another of the same length."""
    if path.suffix != ".gz":  # of which the rest is read already
        path.write_bytes(path.read_bytes()[:-2] + b"X\n")
    os.utime(path, ns=(0, 0))  # on coarse clocks it might be the time that it was


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_file_that_changes_after_it_was_hashed_leaves_no_slice_of_it(
    recipe, digits, monkeypatch, is_compressed
):
    """Its hash would vouch for other text, and for good once the file is put back."""
    config = compressed(digits, recipe) if is_compressed else recipe()
    monkeypatch.setattr(slices, "PAIRS_PER_SLICE", 100)
    plan = make_plan(config)
    path = digits.parent / ("train.de.gz" if is_compressed else "train.de")
    tasks = clean_tasks(plan)
    first = next(tasks)
    first.keep(first.do())
    change(path)
    with pytest.raises(UserError, match=r"train\.de(\.gz)?: changed while it was read"):
        do_all(tasks)
    assert plan.clean.numbers() == [0]


def test_lines_of_a_file_that_changes_are_not_counted(recipe, digits):
    config = recipe()
    plan = make_plan(config)
    change(digits.parent / "train.de")
    with pytest.raises(UserError, match=r"train\.de: changed while it was read"):
        list(clean_tasks(plan))
    assert not plan.index.numbers()
