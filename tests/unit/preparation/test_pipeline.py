import fcntl
import hashlib
import os
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from digits_language import write_digits
from processes import wait_until
from unit.preparation.prepared import content

from dragoman.config import parse_config
from dragoman.corpus.cleaning import EXAMPLE_CHARACTERS
from dragoman.errors import ConfigError, CorruptFileError, RunError, UserError
from dragoman.preparation import dropped_examples, encoding, pipeline, plan, prepare
from dragoman.preparation.pipeline import clean_share, join
from dragoman.preparation.plan import make_plan
from dragoman.preparation.slices import Share
from dragoman.preparation.stage import key_of
from dragoman.preparation.workers import LocalWorkers
from dragoman.shards.passport import PreparedData

SIDES = ("en", "de")


def append(path, text):
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_the_passport_counts_what_is_there(digits_config, digits):
    append(digits.parent / "train.en", "\none two\n" + "nine " * 300 + "\n")
    append(digits.parent / "train.de", "leer\n\n" + "neun " * 300 + "\n")
    prepared = prepare(digits_config)
    train = prepared.passport.splits["train"]
    assert (train.pairs_in, train.pairs_kept) == (803, 800)
    assert train.dropped == {
        "source empty": 1,
        "target empty": 1,
        "longer than data.max_length": 1,
    }
    assert {reason: len(pairs) for reason, pairs in dropped_examples(digits_config).items()} == {
        "source empty": 1,
        "target empty": 1,
        "longer than data.max_length": 1,
    }
    shards = prepared.shards("train")
    assert len(shards) == 800
    assert shards.lengths().sum(axis=0).tolist() == [train.source.tokens, train.target.tokens]
    assert sum(train.source.lengths) == 800
    prepared.verify()


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
    with pytest.raises(UserError, match="nothing was changed"):
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


def hashes_of(digits, split):
    return [
        hashlib.sha256((digits.parent / f"{split}.{side}").read_bytes()).hexdigest()
        for side in ("en", "de")
    ]


def with_hashes(digits, split, hashes):
    """The recipe with these hashes beside the files of a split."""
    files = f'source = "{split}.en", target = "{split}.de"'
    text = digits.read_text(encoding="utf-8")
    assert files in text
    return parse_config(text.replace(files, f"{files}, sha256 = {hashes}"), "recipe.toml")


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_local_file_with_another_hash_than_the_recipe_gives_is_refused_with_both(digits, split):
    right = hashes_of(digits, split)
    assert prepare(with_hashes(digits, split, right)).passport
    wrong = [right[0], "0" * 64]
    key = {"valid": "validation"}.get(split, split)
    with pytest.raises(UserError) as caught:
        prepare(with_hashes(digits, split, wrong))
    both = f"its sha256 is {right[1]} and data.{key}.0.sha256 is {wrong[1]}"
    assert str(caught.value).startswith(f"{digits.parent}/{split}.de: {both}")


def test_a_file_that_changed_since_it_was_hashed_is_hashed_again(digits):
    config = with_hashes(digits, "test", hashes_of(digits, "test"))
    prepare(config)
    append(digits.parent / "test.en", "one\n")
    append(digits.parent / "test.de", "eins\n")
    with pytest.raises(UserError, match=r"test\.en: its sha256 is"):
        prepare(config)


@pytest.mark.parametrize(("count", "given"), [(1, "1 hash"), (3, "3 hashes")])
def test_one_or_three_hashes_for_two_files_are_refused_with_both_counts(digits, count, given):
    with pytest.raises(ConfigError, match=rf"data\.train\.0\..*sha256.*{given} for 2 files"):
        with_hashes(digits, "train", ["0" * 64] * count)


def test_a_pipe_or_a_device_in_place_of_a_corpus_is_refused(digits):
    config = parse_config(digits.read_text(encoding="utf-8"), "x")
    path = digits.parent / "train.en"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match=r"train\.en: is a named pipe, not a regular file"):
        prepare(config)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"train\.en: is a device, not a regular file"):
        prepare(config)


def test_a_file_that_grows_while_it_is_hashed_is_refused(digits):
    path = digits.parent / "train.en"
    size = path.stat().st_size
    for other in (size - 1, size + 1):
        with pytest.raises(UserError, match=r"train\.en: changed while it was read"):
            plan._hash(path, other)


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
        clean_share(apart, Share(number, 3), lambda count: None)
    assert content(join(apart)) == content(whole)


@pytest.mark.usefixtures("small_slices")
def test_duplicates_and_leaks_are_found_across_shares(recipe):
    settings = ["cleaning.duplicates=near", "cleaning.drop_leaks=true"]
    config = recipe(*settings)
    for number in (1, 0):
        clean_share(config, Share(number, 2), lambda count: None)
    train = join(config).passport.splits["train"]
    clean = make_plan(config).clean
    texts = [pair for number in clean.numbers() for pair in clean.pairs(number)]
    held_out = {pair for n in (0, 1) for pair in make_plan(config).held_out.pairs(n)}
    left = [pair for pair in dict.fromkeys(texts) if pair not in held_out]
    assert train.dropped["duplicate"] > 0
    assert train.dropped["in validation or test"] > 0
    assert train.pairs_kept == len(left)


@pytest.mark.usefixtures("small_slices")
def test_joining_before_all_shares_are_done_says_what_is_missing(recipe):
    config = recipe()
    clean_share(config, Share(1, 3), lambda count: None)
    with pytest.raises(RunError, match=r"5 slices .* number 0"):
        join(config)


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


def two_sources(recipe, digits, weights, name="prepared"):
    """The digits, and some of them again in a source of its own, with a few others."""
    folder = digits.parent
    write_digits(folder, "more", 150, seed=9)
    for side in ("en", "de"):
        lines = (folder / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        if not (folder / f"small.{side}").exists():
            own = (folder / f"more.{side}").read_text(encoding="utf-8")
            (folder / f"small.{side}").write_text("".join(lines[:100]) + own, encoding="utf-8")
    sources = ",".join(
        f'{{kind="text",source="{file}.en",target="{file}.de",weight={weight}}}'
        for file, weight in zip(("train", "small"), weights, strict=True)
    )
    return recipe(f"data.train=[{sources}]", "cleaning.duplicates=exact", name=name)


def times_seen(prepared):
    """Pair -> how often training sees it in an epoch."""
    shards, tokenizer = prepared.shards("train"), prepared.tokenizer()
    seen = Counter()
    for number in range(len(shards)):
        source, target = (tokenizer.decode([ids.tolist()])[0] for ids in shards[number])
        seen[source, target] += 1
    return seen


@pytest.mark.parametrize("weights", [(1.0, 3.0), (3.0, 1.0)])
def test_a_pair_of_two_sources_is_seen_with_the_larger_weight(recipe, digits, weights):
    prepared = prepare(two_sources(recipe, digits, weights))
    lines = {
        file: set(
            zip(
                *((digits.parent / f"{file}.{side}").read_text().splitlines() for side in SIDES),
                strict=True,
            )
        )
        for file in ("train", "small")
    }
    assert lines["train"] & lines["small"]
    assert lines["small"] - lines["train"]
    seen = times_seen(prepared)
    for pair in lines["train"] | lines["small"]:
        of_sources = zip(("train", "small"), weights, strict=True)
        assert seen[pair] == max(weight for file, weight in of_sources if pair in lines[file])


def test_duplicates_between_sources_are_counted_where_the_first_of_them_is(recipe, digits):
    prepared = prepare(two_sources(recipe, digits, (1.0, 3.0)))
    train, small = prepared.passport.splits["train"].sources
    assert sum(train.duplicates_of) == train.dropped.get("duplicate", 0)
    assert train.duplicates_of[1] == 0
    assert small.duplicates_of[0] >= 100
    assert sum(small.duplicates_of) == small.dropped["duplicate"]


@pytest.mark.usefixtures("small_slices")
def test_larger_weights_give_the_same_bytes_in_shares_and_need_no_new_cleaning(recipe, digits):
    whole = prepare(two_sources(recipe, digits, (0.5, 2.5)))
    apart = two_sources(recipe, digits, (0.5, 2.5), name="apart")
    for number in (2, 0, 1):
        clean_share(apart, Share(number, 3), lambda count: None)
    assert content(join(apart)) == content(whole)
    before = {path: path.stat().st_mtime_ns for path in whole.folder.glob("clean-*/*")}
    prepare(two_sources(recipe, digits, (1.0, 3.0)))
    assert {path: path.stat().st_mtime_ns for path in whole.folder.glob("clean-*/*")} == before


def test_equal_weights_have_the_shards_of_older_versions(recipe, digits):
    """Their key holds nothing new, so data that is prepared already is found."""
    equal = make_plan(two_sources(recipe, digits, (2.0, 2.0)))
    assert equal.has_overlap
    assert not equal.has_larger_weights
    stages = (equal.kept, equal.held_out, equal.tokenizer)
    names = [stage.folder.name for stage in stages]
    assert equal.shards.folder.name == f"shards-{key_of(*names, [2.0, 2.0], 256)}"
    other = make_plan(two_sources(recipe, digits, (1.0, 2.0)))
    assert other.has_larger_weights
    assert other.kept.folder == equal.kept.folder


def test_held_out_text_that_changes_after_it_was_hashed_is_refused(recipe, digits, monkeypatch):
    def started(plan):
        (digits.parent / "test.en").write_text("other\n" * 40)
        return LocalWorkers(1)

    with pytest.raises(UserError, match=r"test\.en: changed while it was read"):
        prepare(recipe(), started)
    assert not make_plan(recipe()).held_out.numbers()


def test_of_two_at_the_same_time_the_second_waits_and_finds_it_done(recipe, caplog):
    caplog.set_level("INFO")
    begun, may_go_on = threading.Event(), threading.Event()

    def waits():
        return any("waiting for another process that prepares" in line for line in caplog.messages)

    def slowly(plan):
        begun.set()
        assert may_go_on.wait(60)
        return LocalWorkers(1)

    def never(plan):
        raise AssertionError("it was prepared already")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(prepare, recipe(), slowly)
        assert begun.wait(60)
        second = threads.submit(prepare, recipe(), never)
        wait_until(lambda: waits() or second.done())
        may_go_on.set()
        assert second.result(60).passport == first.result(60).passport


def test_parts_do_not_wait_for_each_other_but_a_whole_one_waits_for_them(recipe):
    plan = make_plan(recipe())
    with pipeline._locked(plan, fcntl.LOCK_SH):
        clean_share(recipe(), Share(0, 1), lambda count: None)
        descriptor = os.open(plan.folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


def test_only_cores_that_this_process_may_use_are_used(recipe, digits, monkeypatch):
    monkeypatch.setattr(pipeline, "BYTES_WORTH_A_PROCESS", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert pipeline._cores(make_plan(recipe())) == 3


def test_what_was_encoded_is_not_remembered_in_training(recipe):
    prepare(recipe())
    assert encoding._local.words is None
