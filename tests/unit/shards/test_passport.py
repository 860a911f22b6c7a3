import json
import shutil

import pytest
from digits_language import write_recipe

from dragoman.config import load_config
from dragoman.errors import CorruptFileError, UserError
from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    return prepare(load_config(write_recipe(tmp_path_factory.mktemp("digits")))).folder


@pytest.fixture
def folder(made_once, tmp_path):
    return shutil.copytree(made_once, tmp_path / "prepared")


def changed(folder, **keys):
    path = folder / "data.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    return PreparedData.open(folder)


def test_training_finds_tokenizer_shards_and_text(folder):
    data = PreparedData.open(folder)
    data.verify()
    assert data.tokenizer().size == data.passport.vocabulary == 60
    assert len(data.shards("train")) == data.passport.splits["train"].pairs_per_epoch == 800
    source, target = data.text("test")
    assert len(source) == len(target) == 40


def test_what_is_copied_to_a_host_is_all_that_is_needed(folder, tmp_path):
    names = PreparedData.open(folder).files()
    assert names[-1] == "data.json"
    for name in names:
        (tmp_path / "there" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, tmp_path / "there" / name)
    there = PreparedData.open(tmp_path / "there")
    there.verify()
    assert there.text("validation") == PreparedData.open(folder).text("validation")


def test_equal_data_has_an_equal_hash_however_it_was_made(folder):
    data = PreparedData.open(folder)
    assert changed(folder, command=["other"], key="other").passport.content_hash == (
        data.passport.content_hash
    )
    other = changed(folder, tokenizer_sha256="0" * 64)
    assert other.passport.content_hash != data.passport.content_hash
    with pytest.raises(CorruptFileError, match=str(folder)):
        other.verify()


def test_a_damaged_shard_or_tokenizer_is_named(folder):
    data = PreparedData.open(folder)
    shard = folder / data.passport.splits["train"].shards[0].name
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(CorruptFileError, match=shard.name):
        data.verify()
    with pytest.raises(CorruptFileError, match=r"60 .* 61"):
        changed(folder, vocabulary=61).tokenizer()


def test_text_of_unequal_length_is_refused(folder):
    data = PreparedData.open(folder)
    text = folder / data.passport.splits["test"].source.file
    text.write_text(text.read_text() + "one more\n")
    with pytest.raises(CorruptFileError, match=r"41 .* 40 "):
        data.text("test")


def test_what_is_not_there_is_told_with_what_to_do(folder, tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path / 'none'}.*dragoman prepare"):
        PreparedData.open(tmp_path / "none")
    splits = json.loads((folder / "data.json").read_text())["splits"]
    without_test = changed(folder, splits={name: splits[name] for name in ("train", "validation")})
    with pytest.raises(UserError, match=r"data\.test"):
        without_test.text("test")


@pytest.mark.parametrize("content", ["{", "{}", '{"splits": {}}'])
def test_what_is_no_passport_is_refused(tmp_path, content):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(CorruptFileError, match=r"data\.json"):
        PreparedData.open(tmp_path)
