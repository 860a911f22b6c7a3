"""Exports loaded by packages of other environments, where their interpreters are named.

    TRANSFORMERS_PYTHONS=a/bin/python:b/bin/python ARGOS_PYTHON=c/bin/python pytest <this file>

Those need torch with several releases of transformers, and argostranslate.
"""

import json
import os
import subprocess

import ctranslate2
import pytest
import sentencepiece
from digits_language import write_recipe
from processes import dragoman

from dragoman.decoding.translator import Translator
from dragoman.export.run import export_run
from dragoman.rundir import RunDir

PYTHONS = [path for path in os.environ.get("TRANSFORMERS_PYTHONS", "").split(":") if path]
ARGOS = os.environ.get("ARGOS_PYTHON", "")

WITH_TRANSFORMERS = """
import json, sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("exported")
model = AutoModelForSeq2SeqLM.from_pretrained("exported")
sentences = json.load(sys.stdin)
found = model.generate(**tokenizer(sentences, return_tensors="pt", padding=True))
print(json.dumps(tokenizer.batch_decode(found, skip_special_tokens=True)))
"""
WITH_ARGOS = """
import json, socket, sys

def refuse(*_):
    raise OSError("no network here")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from argostranslate import package, translate
package.install_from_path("exported/translate-en_de-1_0.argosmodel")
print(json.dumps([translate.translate(each, "en", "de") for each in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    overrides = ["--set", "training.steps=400", "--set", "evaluation.every_steps=400"]
    done = dragoman("train", write_recipe(folder), "--run", folder / "run", *overrides)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def sentences_of(run):
    return (run.parent / "test.en").read_text(encoding="utf-8").splitlines()


def answer_of(python, program, folder, sentences):
    done = subprocess.run(
        [python, "-c", program],
        cwd=folder,
        input=json.dumps(sentences),
        env={"HOME": str(folder), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not PYTHONS, reason="no TRANSFORMERS_PYTHONS")
@pytest.mark.parametrize("python", PYTHONS)
def test_every_release_of_transformers_translates_alike(digits_run, tmp_path, python):
    export_run(RunDir(digits_run), "huggingface", tmp_path / "exported")
    sentences = sentences_of(digits_run)
    expected = Translator.load(digits_run, engine="torch").translate(sentences)
    found = answer_of(python, WITH_TRANSFORMERS, tmp_path, sentences)
    # A tie, or a translation that runs on up to another limit.
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= len(sentences) - 1


@pytest.mark.skipif(not ARGOS, reason="no ARGOS_PYTHON")
def test_argos_translate_installs_the_package_and_translates_without_a_network(
    digits_run, tmp_path
):
    export_run(RunDir(digits_run), "argos", tmp_path / "exported")
    found = answer_of(ARGOS, WITH_ARGOS, tmp_path, ["one two three", "four five\n\nsix seven"])
    # Beam, length penalty and precision are those of Argos Translate.
    export_run(RunDir(digits_run), "ctranslate2", tmp_path / "model")
    pieces = sentencepiece.SentencePieceProcessor(str(tmp_path / "model" / "tokenizer.model"))
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="auto")
    (result,) = translator.translate_batch(
        [pieces.encode("one two three", out_type=str)], beam_size=4, length_penalty=0.2
    )
    assert found[0] == pieces.decode(result.hypotheses[0])
    assert found[1].count("\n\n") == 1
