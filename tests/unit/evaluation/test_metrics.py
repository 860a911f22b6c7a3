import subprocess
import sys

import pytest
import torch

from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.evaluation.heldout import HeldOut, fixed_sample
from dragoman.evaluation.metrics import score
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.preparation import prepare

ALONE = Group(0, 1, 0, torch.device("cpu"))


def test_scores_and_signatures_are_those_of_the_plain_command(tmp_path):
    translations = ["Die Katze sitzt auf der Matte.", "Es regnet heute, glaube ich."]
    references = ["Die Katze saß auf der Matte.", "Heute regnet es, glaube ich."]
    (tmp_path / "out").write_text("\n".join(translations) + "\n")
    (tmp_path / "ref").write_text("\n".join(references) + "\n")
    printed = subprocess.run(
        [
            sys.executable,
            "-m",
            "sacrebleu",
            tmp_path / "ref",
            "-i",
            tmp_path / "out",
            "-m",
            "bleu",
            "chrf",
            "-w",
            "6",
            "-f",
            "text",
            "-l",
            "en-de",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    scores = score(translations, references, "de")
    assert f"= {scores.bleu:.6f}" in printed
    assert f"= {scores.chrf:.6f}" in printed
    assert scores.bleu_signature in printed
    assert scores.chrf_signature in printed


def test_the_language_chooses_the_tokenization():
    assert "tok:zh" in score(["你好 世界"], ["你好世界"], "zh").bleu_signature
    assert "tok:13a" in score(["hallo"], ["hallo"], "de").bleu_signature


@pytest.fixture
def objective(digits_config):
    torch.manual_seed(1)
    return Objective(Transformer(digits_config.model, 60), 0.1)


def test_the_held_out_loss_does_not_depend_on_micro_batches_or_dropout(digits_config, objective):
    prepared = prepare(digits_config)
    shards, tokenizer = prepared.shards("validation"), prepared.tokenizer()
    pairs = range(len(shards))
    small = HeldOut(shards, pairs, 20, tokenizer).loss(objective, ALONE)
    large = HeldOut(shards, pairs, 5000, tokenizer).loss(objective, ALONE)
    assert small == pytest.approx(large, rel=1e-5)
    assert HeldOut(shards, pairs, 20, tokenizer).loss(objective, ALONE) == small
    assert objective.training


def test_the_held_out_loss_is_not_smoothed(digits_config, objective):
    prepared = prepare(digits_config)
    held_out = HeldOut(prepared.shards("validation"), range(10), 500, prepared.tokenizer())
    plain = Objective(objective.model, 0.0)
    assert held_out.loss(objective, ALONE) == held_out.loss(plain, ALONE)


def test_the_sample_is_fixed_by_the_seed_and_has_no_pair_twice():
    sample = fixed_sample(1000, 50, seed=3)
    assert len(set(sample.tolist())) == 50
    assert sample.tolist() == fixed_sample(1000, 50, seed=3).tolist()
    assert sample.tolist() != fixed_sample(1000, 50, seed=4).tolist()
    assert len(fixed_sample(10, 50, seed=3)) == 10


def test_a_recipe_without_test_data_is_explained(digits, digits_config):
    text = digits.read_text(encoding="utf-8").replace("test = [", "# test = [")
    without = parse_config(text, "x", [f"data.prepared={digits.parent}/other"])
    with pytest.raises(Exception, match=r"add \[\[data.test\]\]"):
        prepare(without).text("test")
