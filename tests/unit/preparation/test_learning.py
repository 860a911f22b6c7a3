import sys

import psutil
import pytest

from dragoman.config import TokenizerSettings
from dragoman.errors import RunError, UserError
from dragoman.preparation import learning
from dragoman.preparation.learning import learn_pieces, pieces_of
from dragoman.tokenizer import learn_tokenizer

LINES = [f"line number {number} of a small text, {number % 7} times" for number in range(400)]


@pytest.fixture
def in_a_process(monkeypatch):
    monkeypatch.setattr(learning, "LINES_WORTH_A_PROCESS", 1)


@pytest.mark.usefixtures("in_a_process")
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_another_process_learns_the_same_pieces(kind):
    settings = TokenizerSettings(kind=kind, vocabulary=70)
    lines = [*LINES, "with\ra carriage return and ümläute"]
    learned = learn_pieces(lines, len(lines), settings)
    assert learned.model == learn_tokenizer(lines, settings).model


@pytest.mark.usefixtures("in_a_process")
def test_what_is_wrong_with_the_settings_is_told_as_without_a_process():
    settings = TokenizerSettings(vocabulary=100_000)
    with pytest.raises(UserError) as alone:
        learn_tokenizer(LINES, settings)
    with pytest.raises(UserError) as beside:
        learn_pieces(LINES, len(LINES), settings)
    assert str(beside.value) == str(alone.value)
    assert "tokenizer.vocabulary = 100000" in str(beside.value)


@pytest.mark.usefixtures("in_a_process")
def test_a_process_that_dies_is_told_with_its_last_words(monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho out of luck >&2\nexit 7\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(RunError, match=r"exit code 7 \(out of luck\).*tokenizer\.sample_lines"):
        learn_pieces(LINES * 1000, 400_000, TokenizerSettings(vocabulary=70))


@pytest.mark.usefixtures("in_a_process")
def test_an_error_in_the_text_ends_the_process():
    def torn():
        yield from LINES
        raise KeyError("text")

    before = psutil.Process().children()  # other tests may have left a helper of multiprocessing
    with pytest.raises(KeyError):
        learn_pieces(torn(), len(LINES), TokenizerSettings(vocabulary=70))
    assert psutil.Process().children() == before


def test_the_log_says_how_many_pieces_there_are():
    bpe = TokenizerSettings(kind="bpe", vocabulary=1000)
    added = b"I0 7 bpe_model_trainer.cc:321] Added: freq=81 size=20 all=318 active=306 piece=ei"
    assert pieces_of(added, bpe, None) == 20
    assert pieces_of(b"trainer_interface.cc:578] Alphabet size=11", bpe, None) is None
    unigram = TokenizerSettings(kind="unigram", vocabulary=1000)

    def after(size):
        line = f"EM sub_iter=1 size={size} obj=5.7 num_tokens=2403 num_tokens/piece=8.2"
        return pieces_of(line.encode(), unigram, 100_000)

    assert after(100_000) == 0
    assert after(10_000) == 500
    assert after(1000) == after(900) == 1000
    # A text so small that there is little to drop.
    line = b"EM sub_iter=1 size=900 obj=5.7"
    assert 0 <= pieces_of(line, unigram, 900) <= 1000
