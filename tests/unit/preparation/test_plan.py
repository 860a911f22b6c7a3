import hashlib
import os

import pytest
from prepared import append

from dragoman.config import parse_config
from dragoman.errors import ConfigError, UserError
from dragoman.preparation import plan, prepare
from dragoman.preparation.plan import make_plan


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


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_local_file_with_another_hash_than_the_recipe_gives_is_refused_with_both(digits, split):
    right = hashes_of(digits, split)
    assert prepare(with_hashes(digits, split, right)).passport
    wrong = [right[0], "0" * 64]
    key = {"valid": "validation"}.get(split, split)
    with pytest.raises(UserError) as caught:
        prepare(with_hashes(digits, split, wrong))
    both = f"its sha256 is {right[1]} and data.{key}.0.sha256 says {wrong[1]}"
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
        with pytest.raises(UserError, match=r"train\.en: changes while it is read"):
            plan._hash(path, other)
