"""Slices, shares and decisions: the same bytes whoever does the work, in whatever order."""

import shutil
import signal

import numpy as np
import pytest
from processes import dragoman, start_dragoman, wait_until

from dragoman.config import parse_config
from dragoman.errors import CorruptFileError, RunError, StorageError, UserError
from dragoman.preparation import pipeline, slices
from dragoman.preparation.duplicates import decide
from dragoman.preparation.encoding import repeats_of
from dragoman.preparation.pipeline import clean_share, join, prepare
from dragoman.preparation.plan import make_plan
from dragoman.preparation.slices import Share, count_slices


@pytest.fixture
def small_slices(monkeypatch):
    for function in (slices.slices, slices.count_slices):
        monkeypatch.setattr(function, "__defaults__", (100,))


@pytest.fixture
def recipe(digits):
    def with_settings(*overrides, name="prepared"):
        text = digits.read_text(encoding="utf-8")
        place = f"data.prepared={digits.parent}/{name}"
        return parse_config(text, "x", [place, *overrides])

    return with_settings


def content(prepared):
    files = [f.name for split in prepared.passport.splits.values() for f in split.shards]
    files.append(prepared.passport.tokenizer_file)
    return {name: (prepared.folder / name).read_bytes() for name in files}


def nothing(count):
    pass


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


def test_more_cores_give_the_same_bytes(recipe, monkeypatch):
    alone = prepare(recipe())
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 3)
    assert content(prepare(recipe(name="by-three"))) == content(alone)


def test_an_error_in_a_process_is_the_same_sentence(recipe, digits, monkeypatch):
    (digits.parent / "train.de").write_bytes(b"\xff\n" * 800)
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 2)
    with pytest.raises(UserError, match=r"train\.de, line 1: not UTF-8"):
        prepare(recipe())


def test_a_full_disk_in_a_process_is_the_same_sentence(recipe, digits, monkeypatch):
    (digits.parent / "prepared").mkdir()
    config = recipe()
    make_plan(config).clean.folder.write_text("a file where the folder should be")
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 2)
    with pytest.raises(StorageError, match=r"prepared: .* while preparing data"):
        prepare(config)


@pytest.mark.usefixtures("small_slices")
def test_a_finished_slice_is_not_done_again(recipe, monkeypatch):
    config = recipe()
    clean_share(config, Share(0, 2), nothing)
    stage = make_plan(config).clean
    times = {n: stage.file(n, "json").stat().st_mtime_ns for n in stage.numbers()}
    assert sorted(times) == [0, 2, 4, 6]
    prepare(config)
    assert {n: stage.file(n, "json").stat().st_mtime_ns for n in times} == times


def test_a_changed_setting_redoes_what_follows_from_it_alone(recipe):
    def stages(*overrides):
        plan = make_plan(recipe(*overrides))
        return {name: getattr(plan, name).folder.name for name in NAMES}

    NAMES = ("clean", "held_out", "kept", "tokenizer", "shards")
    before = stages()

    def changed(*overrides):
        return {name for name, folder in stages(*overrides).items() if folder != before[name]}

    assert changed("training.seed=5", "model.dropout=0.3") == set()
    assert changed("data.max_length=50") == {"shards"}
    assert changed("tokenizer.vocabulary=50") == {"tokenizer", "shards"}
    assert changed("cleaning.drop_leaks=true") == {"kept", "tokenizer", "shards"}
    assert changed("cleaning.max_ratio=3.0") == {"clean", "kept", "tokenizer", "shards"}


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


@pytest.mark.parametrize("keys_at_once", [10, 100, 10_000])
def test_the_first_of_equal_keys_stays_whatever_is_compared_at_once(keys_at_once):
    chance = np.random.default_rng(1)
    keys = chance.integers(0, 2**64, 300, dtype=np.uint64)[chance.integers(0, 300, 2000)]
    parts = np.split(keys, [100, 700, 701])
    held_out = keys[:3]
    decision = decide(parts, held_out, drop_duplicates=True, keys_at_once=keys_at_once)
    seen: set[int] = set()
    for key, duplicate, leak in zip(
        keys.tolist(), *(np.concatenate(flags) for flags in decision), strict=True
    ):
        assert leak == (key in held_out.tolist())
        assert duplicate == (key in seen and not leak)
        seen.add(key)


@pytest.mark.parametrize(
    ("stage", "suffix"),
    [("clean", "source"), ("clean", "keys"), ("kept", "flags"), ("held_out", "target")],
)
@pytest.mark.parametrize("damage", ["cut", "binary", "one byte", "missing"])
def test_a_damaged_slice_is_refused_and_made_again(recipe, stage, suffix, damage):
    config = recipe()
    prepare(config)
    damaged = getattr(make_plan(config), stage)
    path = damaged.file(0, suffix)
    before = path.read_bytes()
    other = recipe("data.max_length=255")  # makes the shards anew, from the same slices
    match damage:
        case "cut":
            path.write_bytes(before[: len(before) // 2])
        case "binary":
            path.write_bytes(b"\xff\xfe\0" * 100)
        case "one byte":
            path.write_bytes(bytes([before[0] ^ 1]) + before[1:])
        case "missing":
            path.unlink()
    with pytest.raises(CorruptFileError, match=rf"{path}: .* remove the folder {damaged.folder} "):
        prepare(other)
    shutil.rmtree(damaged.folder)
    prepare(other)
    assert path.read_bytes() == before


def test_weights_that_leave_no_pair_are_refused(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 0.0001 }')
    digits.write_text(weighted, encoding="utf-8")
    with pytest.raises(UserError, match=r"data\.train \(0\.0001\) leave none of its 800 pairs"):
        prepare(recipe())


@pytest.mark.parametrize(("weight", "expected"), [(2.0, 2.0), (0.25, 0.25), (1.5, 1.5)])
def test_a_weight_says_how_often_pairs_are_seen(weight, expected):
    keys = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    repeats = repeats_of(keys, weight)
    assert repeats.mean() == pytest.approx(expected, abs=0.02)
    assert set(repeats.tolist()) <= {int(weight), int(weight) + 1}
    assert repeats_of(keys, 1.0) is None


def test_weights_are_in_the_passport_and_the_shards(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 3.0 }')
    digits.write_text(weighted, encoding="utf-8")
    prepared = prepare(recipe())
    train = prepared.passport.splits["train"]
    assert (train.pairs_kept, train.pairs_per_epoch) == (800, 2400)
    assert len(prepared.shards("train")) == 2400
    assert train.sources[0].weight == 3.0


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


def test_slices_are_counted_alike(digits_config, monkeypatch):
    assert count_slices(digits_config.data, 100) == 8
    assert count_slices(digits_config.data, 799) == 2
    assert [s.number for s in slices.slices(digits_config.data, Share(1, 3).has, 100)] == [1, 4, 7]


def test_a_slice_of_very_long_lines_has_fewer_of_them(recipe, monkeypatch):
    data = recipe().data
    whole = [pair for part in slices.slices(data, lambda _: True) for pair in part.pairs]
    monkeypatch.setattr(slices, "CHARACTERS_PER_SLICE", 1000)
    parts = list(slices.slices(data, lambda _: True))
    assert [pair for part in parts for pair in part.pairs] == whole
    assert [part.number for part in parts] == list(range(count_slices(data)))
    longest = max(len(pair.source) + len(pair.target) for pair in whole)
    assert len(parts) > 1
    for part in parts:
        assert sum(len(pair.source) + len(pair.target) for pair in part.pairs) <= 1000 + longest
