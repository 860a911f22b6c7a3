import shutil

import pytest
import torch

from dragoman.checkpoints.names import point_to
from dragoman.checkpoints.storage import save_checkpoint
from dragoman.config import ModelSettings, TokenizerSettings
from dragoman.decoding.trained import load_trained
from dragoman.errors import CorruptFileError, UserError
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir
from dragoman.tokenizer import learn_tokenizer

SHAPE = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32)
TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5
CPU = torch.device("cpu")
ID = "ab12" * 8


def save(run, step, vocabulary=40, owner=None):
    torch.manual_seed(step)
    model = Transformer(SHAPE, 40)
    save_checkpoint(
        run.checkpoints,
        step,
        model=dict(model.state_dict()),
        optimizer={},
        state={"run": {}, "model": SHAPE.model_dump(), "vocabulary": vocabulary},
        tokenizer_model=learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40)).model,
        owner=owner,
    )
    return model.state_dict()


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_a_checkpoint_is_a_model_and_its_tokenizer_ready_to_translate(run):
    first = save(run, 5)
    save(run, 10)
    point_to(run.checkpoints, "best", "step-00000005")
    model, tokenizer, steps = load_trained(run, "best", 1, CPU)
    assert steps == [5]
    assert not model.training
    assert tokenizer.size == 40
    assert all(torch.equal(weight, first[name]) for name, weight in model.state_dict().items())
    assert load_trained(run, "latest", 1, CPU).steps == [10]


def test_the_newest_are_averaged(run):
    weights = [save(run, step)["embedding.weight"] for step in (5, 10, 15)]
    averaged = load_trained(run, "best", 2, CPU)
    assert averaged.steps == [10, 15]
    expected = (weights[1] + weights[2]) / 2
    torch.testing.assert_close(averaged.model.embedding.weight.data, expected)
    with pytest.raises(UserError, match=r"3 checkpoint\(s\).* 4 "):
        load_trained(run, "best", 4, CPU)


def test_a_tokenizer_of_another_size_than_the_model_is_refused(run):
    save(run, 5, vocabulary=50)
    with pytest.raises(CorruptFileError, match=r"tokenizer\.model.*40.*50.*--checkpoint"):
        load_trained(run, "best", 1, CPU)


def test_a_checkpoint_of_another_run_is_refused(run):
    save(run, 5, owner={"id": "cd34" * 8})
    run.id.write_text(ID)
    with pytest.raises(CorruptFileError, match="cd34"):
        load_trained(run, "5", 1, CPU)
    shutil.rmtree(run.checkpoints)
    save(run, 5, owner={"id": ID})
    assert load_trained(run, "5", 1, CPU).steps == [5]


def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=str(tmp_path / "none")):
        load_trained(RunDir(tmp_path / "none"), "best", 1, CPU)
