"""Train from text to translations, and ask for quality."""

import pytest
from digits_language import write_digits
from processes import dragoman

from dragoman.rundir import RunDir, read_json, read_sentences

pytestmark = pytest.mark.timeout(400)


def test_a_small_model_learns_to_reverse_digits(digits, tmp_path):
    run = tmp_path / "run"
    write_digits(digits.parent, "train", 4000, seed=1)
    settings = {
        "tokenizer.vocabulary": 100,  # whole words
        "training.steps": 500,
        "training.tokens_per_update": 800,
        "training.micro_batch_tokens": 1000,
        "model.width": 64,
        "model.heads": 4,
        "model.filter": 128,
        "model.dropout": 0.0,
        "schedule.kind": "linear",
        "schedule.peak": 0.005,
        "evaluation.every_steps": 500,
        "checkpoints.keep_last": 4,
        "checkpoints.every_steps": 50,
    }
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    trained = dragoman("train", digits, "--run", run, *overrides)
    assert trained.returncode == 0, trained.stderr
    for more in ([], ["--average", 2], ["--beam", 1]):
        done = dragoman("evaluate", run, *more)
        assert done.returncode == 0, done.stderr
        scores = read_json(RunDir(run).evaluation("test"))
        assert scores["bleu"] > 90, more
        assert "tok:13a" in scores["bleu_signature"]
        assert scores["bleu_low"] - 1e-9 <= scores["bleu"] <= scores["bleu_high"] + 1e-9
        interval = f"({scores['bleu_low']:.1f} to {scores['bleu_high']:.1f})"
        assert f"BLEU {scores['bleu']:.1f} {interval}" in done.stdout
        for what in ("translations", "references"):
            kept = read_sentences(RunDir(run).evaluation_text("test", what))
            assert len(kept or []) == scores["sentences"]
    translated = dragoman("translate", run, "one two three", "nine eight seven six")
    assert translated.stdout == "drei zwei eins\nsechs sieben acht neun\n"
