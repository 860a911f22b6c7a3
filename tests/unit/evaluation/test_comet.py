"""COMET's package is heavy: one with its interface answers here, in a real process.

tests/system/test_comet_elsewhere.py runs the package itself.
"""

import os
import sys
from pathlib import Path

import pytest

from dragoman.errors import RunError, UserError
from dragoman.evaluation.comet import Comet, check_comet, checkpoint_in, comet_score, name_of

PACKAGE = """
from pathlib import Path

print("chatter on standard output")


class Model:
    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True, num_workers=None):
        assert (gpus, progress_bar) == (0, False)
        assert samples[0] == {"src": "a", "mt": "x", "ref": "ü"}
        return {"scores": [0.5 + 0.1 * n for n in range(len(samples))]}


def load_from_checkpoint(checkpoint_path):
    assert Path(checkpoint_path).is_file()
    exec(Path(checkpoint_path).read_text())
    return Model()
"""
HUB = """
def try_to_load_from_cache(repo_id, filename):
    return filename if repo_id == "xlm-roberta-large" else None
"""
THREE = ["a", "b"], ["x", "y"], ["ü", "s"]


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "wmt22-comet-da" / "checkpoints" / "model.ckpt"
    file.parent.mkdir(parents=True)
    file.write_text("pass", encoding="utf-8")
    hparams = "pretrained_model: xlm-roberta-large"
    (file.parents[1] / "hparams.yaml").write_text(hparams, encoding="utf-8")
    return file


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder that comes first among those of installed packages."""
    site = tmp_path / "site"
    information = site / "unbabel_comet-2.2.7.dist-info"
    information.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: unbabel-comet\nVersion: 2.2.7\n"
    (information / "METADATA").write_text(metadata, encoding="utf-8")
    (site / "comet").mkdir()
    (site / "comet" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (site / "huggingface_hub.py").write_text(HUB, encoding="utf-8")
    (site / "pkg_resources.py").touch()
    torch = "class cuda:\n    is_available = staticmethod(lambda: False)\n"
    (site / "torch.py").write_text(torch, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return site


def test_a_model_is_found_by_its_file_and_by_its_folder(model, monkeypatch):
    assert checkpoint_in(model) == checkpoint_in(model.parents[1]) == model
    monkeypatch.chdir(model.parent)
    assert checkpoint_in(Path("model.ckpt")) == model


def test_a_link_into_a_cache_is_kept(model):
    blob = model.rename(model.parents[2] / "blob")
    model.symlink_to(blob)
    assert checkpoint_in(model.parents[1]) == model


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.ckpt"):
        checkpoint_in(tmp_path)


def test_a_folder_with_several_models_is_refused(model):
    model.with_name("other.ckpt").touch()
    with pytest.raises(UserError, match=r"2 COMET models.*other\.ckpt"):
        checkpoint_in(model.parents[1])


def test_a_model_without_its_settings_is_refused(model):
    (model.parents[1] / "hparams.yaml").unlink()
    with pytest.raises(UserError, match=r"wmt22-comet-da/hparams\.yaml: is missing"):
        checkpoint_in(model)


def test_a_model_goes_by_its_public_name_or_by_its_folder(model):
    cached = Path("/hub/models--Unbabel--wmt22-comet-da/snapshots/371e98/checkpoints/model.ckpt")
    assert name_of(cached) == "Unbabel/wmt22-comet-da"
    assert name_of(model) == "wmt22-comet-da"


def test_the_score_is_the_mean_over_sentences_with_its_interval(model, installed):
    found = comet_score(Comet(model), *THREE)
    assert found.score == pytest.approx(0.55)
    assert (found.low, found.high) == pytest.approx((0.5, 0.6))
    assert found.signature == "model:wmt22-comet-da|version:2.2.7"


def test_without_the_package_the_way_to_install_it_is_named(model, installed):
    (installed / "comet" / "__init__.py").unlink()
    (installed / "comet").rmdir()
    with pytest.raises(UserError, match=r"pip install unbabel-comet.*--comet-python"):
        check_comet(Comet(model))


def test_an_interpreter_that_cannot_be_started_is_named(model, tmp_path):
    with pytest.raises(UserError, match="nowhere: cannot be started"):
        check_comet(Comet(model, tmp_path / "nowhere"))


def test_a_program_that_is_no_python_is_named(model):
    with pytest.raises(RunError, match="/bin/false: the process that runs COMET failed"):
        check_comet(Comet(model, Path("/bin/false")))


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("raise RuntimeError('invalid header\\nand more')", UserError, "RuntimeError: invalid h"),
        ("import os; os.kill(os.getpid(), 9)", RunError, "was ended by SIGKILL"),
        ("Model.predict = lambda *_, **__: {}", RunError, "could not score with it .KeyError"),
        ("Model.predict = lambda *_, **__: {'scores': [0.1, float('nan')]}", RunError, "finite"),
    ],
    ids=["no model", "killed", "no scores", "no numbers"],
)
def test_a_model_that_cannot_be_used_is_named_with_the_reason(
    model, installed, content, error, said
):
    model.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=said):
        comet_score(Comet(model), *THREE)


def test_an_encoder_that_is_not_on_this_machine_is_named(model, installed):
    model.write_text("None.endswith", encoding="utf-8")
    hparams = "pretrained_model: absent/encoder"
    (model.parents[1] / "hparams.yaml").write_text(hparams, encoding="utf-8")
    with pytest.raises(UserError, match="encoder absent/encoder is not on this machine"):
        comet_score(Comet(model), *THREE)


def test_a_crash_behind_the_answer_does_not_matter(model, installed):
    crash = "import atexit, os; atexit.register(lambda: os.kill(os.getpid(), 11))"
    model.write_text(crash, encoding="utf-8")
    assert comet_score(Comet(model, Path(sys.executable)), *THREE).score == pytest.approx(0.55)


def test_the_process_is_kept_from_the_network(model, installed):
    check = "import os; assert os.environ['HF_HUB_OFFLINE'] == '1'"
    model.write_text(check, encoding="utf-8")
    assert comet_score(Comet(model), *THREE).score == pytest.approx(0.55)
