import pytest
from unit.preparation.prepared import content

from dragoman.errors import StorageError, UserError
from dragoman.preparation import pipeline, prepare
from dragoman.preparation.plan import make_plan


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
