"""The package itself is heavy; a stand-in with its interface answers here."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from dragoman.errors import UserError
from dragoman.evaluation.comet import checkpoint_in, comet_score


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "wmt22-comet-da" / "checkpoints" / "model.ckpt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    return file


@pytest.fixture
def asked(monkeypatch):
    """Whatever the stand-in was called with."""
    found = {}

    def load_from_checkpoint(path):
        def predict(rows, **options):
            found.update(rows=rows, options=options, path=path)
            return SimpleNamespace(scores=[0.5 + 0.1 * n for n in range(len(rows))])

        return SimpleNamespace(predict=predict)

    package = ModuleType("comet")
    package.load_from_checkpoint = load_from_checkpoint
    monkeypatch.setitem(sys.modules, "comet", package)
    return found


def test_a_model_is_found_by_its_file_and_by_its_folder(model):
    assert checkpoint_in(model) == checkpoint_in(model.parent.parent) == model


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.ckpt"):
        checkpoint_in(tmp_path)


def test_the_score_is_the_mean_over_sentences_with_its_interval(model, asked):
    found = comet_score(model, ["a", "b"], ["x", "y"], ["r", "s"])
    assert asked["rows"] == [
        {"src": "a", "mt": "x", "ref": "r"},
        {"src": "b", "mt": "y", "ref": "s"},
    ]
    assert asked["path"] == str(model)
    assert found.score == pytest.approx(0.55)
    assert (found.low, found.high) == pytest.approx((0.5, 0.6))


def test_without_the_package_it_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UserError, match=r"dragoman\[comet\]"):
        comet_score(model, ["a"], ["b"], ["c"])


def test_a_file_that_is_no_model_is_named(model, asked, monkeypatch):
    def refuse(path):
        raise RuntimeError("invalid header\nand more")

    monkeypatch.setattr(sys.modules["comet"], "load_from_checkpoint", refuse)
    with pytest.raises(UserError, match=r"model\.ckpt: COMET cannot load it: invalid header$"):
        comet_score(model, ["a"], ["b"], ["c"])
