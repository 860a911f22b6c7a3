"""COMET's real package, in an environment of its own, where its interpreter is named.

    COMET_PYTHON=a/bin/python pytest <this file>

It needs unbabel-comet and setuptools below 82. The model is tiny, random and made here, since the
published ones are downloads of gigabytes: an encoder in Hugging Face's cache, and COMET's
regression model upon it, laid out as COMET's own download does.
"""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import dragoman, sentence, start_dragoman, wait_until

from dragoman.errors import UserError
from dragoman.evaluation.comet import Comet, comet_score

PYTHON = os.environ.get("COMET_PYTHON", "")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="no COMET_PYTHON"),
    pytest.mark.timeout(900),
]

LOADED_BYTES = 150_000_000
"""What a process holds that has imported torch, and one that has only been started does not."""
SOURCES = ["one two", "three", "four five six seven", "eight"] * 10
TRANSLATIONS = ["eins zwei", "drei", "vier acht", ""] * 10
REFERENCES = ["zwei eins", "drei", "sieben sechs fünf vier", "acht"] * 10

BUILD = """
import pathlib, yaml
import pytorch_lightning, tokenizers, torch, transformers
from comet.models import RegressionMetric

encoder = pathlib.Path("cache/hub/models--tiny--encoder/snapshots/0")
encoder.mkdir(parents=True)
(encoder.parents[1] / "refs").mkdir()
(encoder.parents[1] / "refs" / "main").write_text("0")
pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
pieces += [(letter, -2.0) for letter in "\u2581abcdefghijklmnopqrstuvwxyzäöüß"]
text = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=3))
text.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
text.post_processor = tokenizers.processors.TemplateProcessing(
    single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
)
transformers.XLMRobertaTokenizerFast(tokenizer_object=text).save_pretrained(encoder)
transformers.XLMRobertaConfig(
    vocab_size=len(pieces), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=32, max_position_embeddings=66,
).save_pretrained(encoder)

torch.manual_seed(1)
model = RegressionMetric(
    pretrained_model="tiny/encoder", load_pretrained_weights=False, hidden_sizes=[32]
)
for weights in model.parameters():
    torch.nn.init.normal_(weights, std=0.3)
trainer = pytorch_lightning.Trainer(logger=False, accelerator="cpu")
trainer.strategy.connect(model)
pathlib.Path("metric/checkpoints").mkdir(parents=True)
trainer.save_checkpoint("metric/checkpoints/model.ckpt", weights_only=True)
pathlib.Path("metric/hparams.yaml").write_text(yaml.safe_dump(dict(model.hparams)))
"""
DIRECTLY = """
import json, sys
from comet import load_from_checkpoint
model = load_from_checkpoint("metric/checkpoints/model.ckpt")
print(json.dumps(model.predict(json.load(sys.stdin), batch_size=7, gpus=0)["scores"]))
"""
NO_NETWORK = """
import pathlib, socket

def refuse(*_, **__):
    pathlib.Path({reached!r}).write_text("a program has asked for the network")
    raise OSError("no network here")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comet")
    run_there(BUILD, folder)
    return folder


def run_there(program, folder, typed=""):
    done = subprocess.run(
        [PYTHON, "-c", program],
        cwd=folder,
        input=typed,
        env={"HOME": str(folder), "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def metric(built, tmp_path, monkeypatch):
    """A copy of the model, which may be changed, in a world without a network."""
    reached = tmp_path / "reached"
    (tmp_path / "site").mkdir()
    program = NO_NETWORK.format(reached=str(reached))
    (tmp_path / "site" / "sitecustomize.py").write_text(program, encoding="utf-8")
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), known]))
    monkeypatch.setenv("HF_HOME", str(built / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield Comet(shutil.copytree(built / "metric", tmp_path / "metric"), Path(PYTHON))
    assert not reached.exists()


def test_scores_are_those_of_a_direct_call_even_in_a_job_of_slurm(built, metric, monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_JOB_NAME", "training")
    rows = [
        {"src": source, "mt": translation, "ref": reference}
        for source, translation, reference in zip(SOURCES, TRANSLATIONS, REFERENCES, strict=True)
    ]
    scores = json.loads(run_there(DIRECTLY, built, json.dumps(rows)).splitlines()[-1])
    found = comet_score(metric, SOURCES, TRANSLATIONS, REFERENCES)
    assert len(set(scores)) >= 4
    assert found.score == pytest.approx(sum(scores) / len(scores), rel=1e-5)
    assert min(scores) < found.low < found.score < found.high < max(scores)
    assert found.signature.startswith("model:metric|version:")


def test_the_command_prints_nothing_but_its_scores(trained, metric):
    _, run = trained
    done = dragoman("evaluate", run, "--json", *options(metric))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"][-1]["name"] == "COMET"
    for noise in ("GPU", "Lightning", "pkg_resources", "Predicting", "Warning", "Encoder"):
        assert noise not in done.stderr


def options(metric):
    return ["--comet", metric.model / "checkpoints" / "model.ckpt", "--comet-python", metric.python]


def test_an_encoder_that_is_not_on_this_machine_is_named_and_not_fetched(
    metric, monkeypatch, tmp_path
):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    with pytest.raises(UserError, match="tiny/encoder is not on this machine"):
        comet_score(metric, SOURCES, TRANSLATIONS, REFERENCES)


def test_a_broken_checkpoint_is_refused_in_a_sentence(trained, metric):
    _, run = trained
    checkpoint = metric.model / "checkpoints" / "model.ckpt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    said = sentence(dragoman("evaluate", run, *options(metric)), code=2)
    assert f"{checkpoint}: COMET cannot load it" in said


def test_ctrl_c_ends_both_processes(trained, metric):
    _, run = trained
    process = start_dragoman("evaluate", run, *options(metric))
    scorers = []

    def is_loading():
        assert process.poll() is None, process.communicate()
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children():
                if child.memory_info().rss > LOADED_BYTES and "comet_scorer" in str(
                    child.cmdline()
                ):
                    scorers.append(child)
        return scorers

    wait_until(is_loading, seconds=600)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in output + errors
    wait_until(lambda: not scorers[0].is_running())
