import os
import shutil
import signal
from pathlib import Path

import pytest
from prepared import append, content, nothing
from processes import dragoman, start_dragoman, wait_until

from dragoman.config import parse_config
from dragoman.corpus.cleaning import EXAMPLE_CHARACTERS
from dragoman.errors import CorruptFileError, RunError, UserError
from dragoman.preparation import dropped_examples, prepare
from dragoman.preparation.pipeline import clean_share, join
from dragoman.preparation.plan import make_plan
from dragoman.preparation.slices import Share
from dragoman.shards.passport import PreparedData


def test_held_out_text_keeps_every_line(digits_config, digits):
    append(digits.parent / "test.en", "\n")
    append(digits.parent / "test.de", "leer\n")
    sources, references = prepare(digits_config).text("test")
    assert len(sources) == len(references) == 41
    assert (sources[-1], references[-1]) == ("", "leer")


def test_the_same_input_gives_the_same_bytes_and_is_not_prepared_twice(digits_config):
    first = prepare(digits_config)
    before = content(first)
    times = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    again = prepare(digits_config)
    assert {path: path.stat().st_mtime_ns for path in again.folder.rglob("*")} == times
    shutil.rmtree(first.folder)
    assert content(prepare(digits_config)) == before


def test_changed_text_or_settings_are_prepared_anew(digits_config, digits):
    first = prepare(digits_config).passport
    text = digits.read_text(encoding="utf-8")
    other = parse_config(text, "x", ["tokenizer.vocabulary=50"])
    assert prepare(other).passport.vocabulary == 50
    append(digits.parent / "train.en", "one\n")
    append(digits.parent / "train.de", "eins\n")
    assert prepare(digits_config).passport.content_hash != first.content_hash


def test_settings_of_training_do_not_touch_prepared_data(digits_config, digits):
    first = prepare(digits_config).passport
    text = digits.read_text(encoding="utf-8")
    assert prepare(parse_config(text, "x", ["training.seed=9"])).passport == first


def test_a_failed_preparation_leaves_the_old_one_and_no_half_files(digits_config, digits):
    before = prepare(digits_config)
    append(digits.parent / "train.en", b"\xff\xff\n")
    append(digits.parent / "train.de", b"eins\n")
    with pytest.raises(UserError, match=r"train\.en, line 801: not UTF-8"):
        prepare(digits_config)
    PreparedData.open(before.folder).verify()
    assert not [path for path in digits.parent.rglob("*") if path.name.startswith(".")]


def test_a_folder_with_other_things_in_it_is_not_touched(digits_config):
    folder = Path(digits_config.data.prepared)
    folder.mkdir()
    (folder / "thesis.txt").write_text("three years of work")
    with pytest.raises(UserError, match="nothing was touched"):
        prepare(digits_config)
    assert (folder / "thesis.txt").read_text() == "three years of work"


def test_an_existing_tokenizer_is_used_as_it_is(digits_config, digits, tmp_path):
    learned = prepare(digits_config).tokenizer()
    model = tmp_path / "given.model"
    model.write_bytes(learned.model)
    config = parse_config(
        digits.read_text(encoding="utf-8"),
        "x",
        [f"tokenizer.model={model}", f"data.prepared={tmp_path}/other", "tokenizer.vocabulary=9"],
    )
    assert prepare(config).tokenizer().model == learned.model


def test_data_without_its_passport_or_with_a_torn_one_is_refused(digits_config, tmp_path):
    with pytest.raises(UserError, match="dragoman prepare"):
        PreparedData.open(tmp_path / "nothing")
    prepared = prepare(digits_config)
    passport = prepared.folder / "data.json"
    os.truncate(passport, 100)
    with pytest.raises(CorruptFileError, match=r"data\.json"):
        PreparedData.open(prepared.folder)


def test_prepared_data_serves_where_the_text_is_not(digits_config, digits):
    prepared = prepare(digits_config)
    (digits.parent / "train.en").unlink()
    assert prepare(digits_config).passport == prepared.passport


def test_text_copied_elsewhere_with_another_date_is_not_prepared_again(digits_config, digits):
    prepared = prepare(digits_config)
    os.utime(digits.parent / "train.en")
    assert prepare(digits_config).passport == prepared.passport


def test_a_carriage_return_inside_a_line_does_not_shift_held_out_text(digits_config, digits):
    append(digits.parent / "test.en", b"one\rtwo\nthree\n")
    append(digits.parent / "test.de", b"zwei eins\ndrei\n")
    sources, references = prepare(digits_config).text("test")
    assert len(sources) == len(references) == 42
    assert (sources[-1], references[-1]) == ("three", "drei")


def test_a_recipe_that_reads_no_file_is_prepared_too(tmp_path, digits):
    phrases = '[{kind="phrasebook",pairs=%d}]'
    config = parse_config(
        digits.read_text(encoding="utf-8"),
        "x",
        [f"data.{split}={phrases % 300}" for split in ("train", "validation", "test")]
        + ["tokenizer.vocabulary=200"],
    )
    prepared = prepare(config)
    assert prepared.passport.splits["train"].pairs_kept == 300
    assert prepare(config).passport == prepared.passport


def test_another_test_set_does_not_make_it_other_data_for_training(digits_config, digits):
    before = prepare(digits_config).passport
    append(digits.parent / "test.en", "one\n")
    append(digits.parent / "test.de", "eins\n")
    after = prepare(digits_config).passport
    assert after.splits["test"].pairs_in == 41
    assert after.key != before.key
    assert after.content_hash == before.content_hash


def test_the_example_of_a_monstrous_line_is_cut(digits_config, digits):
    append(digits.parent / "train.en", "nine " * 400_000 + "\n")
    append(digits.parent / "train.de", "neun\n")
    prepare(digits_config)
    ((source, target),) = dropped_examples(digits_config)["longer than cleaning.max_characters"]
    assert len(source) == EXAMPLE_CHARACTERS
    assert target == "neun"


@pytest.mark.usefixtures("small_slices")
def test_shares_cleaned_apart_and_joined_give_the_same_bytes(recipe):
    whole = prepare(recipe())
    assert len(whole.passport.splits["train"].shards) == 2 * 8
    apart = recipe(name="apart")
    for number in (2, 0, 1):
        clean_share(apart, Share(number, 3), nothing)
    assert content(join(apart)) == content(whole)


@pytest.mark.usefixtures("small_slices")
def test_duplicates_and_leaks_are_found_across_shares(recipe):
    settings = ["cleaning.duplicates=near", "cleaning.drop_leaks=true"]
    config = recipe(*settings)
    for number in (1, 0):
        clean_share(config, Share(number, 2), nothing)
    train = join(config).passport.splits["train"]
    texts = [pair for n in make_plan(config).clean.numbers() for pair in lines_of(config, n)]
    held_out = {pair for n in (0, 1) for pair in make_plan(config).held_out.pairs(n)}
    left = [pair for pair in dict.fromkeys(texts) if pair not in held_out]
    assert train.dropped["duplicate"] > 0
    assert train.dropped["in validation or test"] > 0
    assert train.pairs_kept == len(left)


def lines_of(config, number):
    return make_plan(config).clean.pairs(number)


@pytest.mark.usefixtures("small_slices")
def test_joining_before_all_shares_are_done_says_what_is_missing(recipe):
    config = recipe()
    clean_share(config, Share(1, 3), nothing)
    with pytest.raises(RunError, match="5 slices are not clean yet, the first of them is number 0"):
        join(config)


def test_stages_that_no_longer_count_are_swept(recipe):
    prepare(recipe())
    prepared = prepare(recipe("tokenizer.vocabulary=50"))
    folders = {path.name.rsplit("-", 1)[0] for path in prepared.folder.iterdir() if path.is_dir()}
    assert sorted(folders) == ["clean", "held-out", "kept", "shards", "tokenizer"]
    assert len([path for path in prepared.folder.iterdir() if path.is_dir()]) == 5


def test_duplicates_and_leaks_are_dropped_and_counted(recipe, digits):
    folder = digits.parent
    for name, texts in {
        "train.en": ["One two.", "one TWO!", "three four", "five six", "five six"],
        "train.de": ["Zwei eins.", "zwei, eins", "vier drei", "sechs fünf", "sechs acht"],
        "valid.en": ["Three, four"],
        "valid.de": ["Vier drei!"],
    }.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    settings = ["tokenizer.vocabulary=40", "cleaning.drop_leaks=true"]

    def dropped(kind):
        config = recipe(*settings, f"cleaning.duplicates={kind}", name=kind)
        return prepare(config).passport.splits["train"].dropped

    assert dropped("near") == {"duplicate": 1, "in validation or test": 1}
    assert dropped("exact") == {}
    assert dropped("keep") == {}


def test_weights_that_leave_no_pair_are_refused(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 0.0001 }')
    digits.write_text(weighted, encoding="utf-8")
    with pytest.raises(UserError, match=r"data\.train \(0\.0001\) leave none of its 800 pairs"):
        prepare(recipe())


def test_killed_at_any_moment_the_same_command_goes_on(digits, tmp_path):
    many = tmp_path / "many.en", tmp_path / "many.de"
    for path, word in zip(many, ("one", "eins"), strict=True):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{word} {number:x} {word}\n" for number in range(450_000))
    train = 'data.train=[{kind="text",source="many.en",target="many.de"}]'
    command = ["prepare", digits, "--set", train]
    place = tmp_path / "prepared"
    killed = 0
    for slices_done in (1, 3):
        process = start_dragoman(*command)
        wait_until(lambda n=slices_done: len(list(place.glob("clean-*/*.json"))) >= n)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert killed
    done = dragoman(*command)
    assert done.returncode == 0, done.stderr
    resumed = {p.name: p.read_bytes() for p in place.glob("shards-*/*.npy")}

    other = dragoman(*command, "--set", f"data.prepared={tmp_path}/undisturbed")
    assert other.returncode == 0, other.stderr
    elsewhere = (tmp_path / "undisturbed").glob("shards-*/*.npy")
    assert resumed == {path.name: path.read_bytes() for path in elsewhere}
    assert len(resumed) == 2 * 5 + 4
    assert list(place.rglob(".*")) == []
