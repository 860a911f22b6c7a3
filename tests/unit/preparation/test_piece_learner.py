import io
import sys
from types import SimpleNamespace

import pytest

from dragoman.config import TokenizerSettings
from dragoman.preparation.piece_learner import main
from dragoman.tokenizer import learn_tokenizer

LINES = [f"line number {number} of a small text" for number in range(200)]


@pytest.fixture
def learned(monkeypatch):
    def answer(settings):
        given = "\n".join([settings.model_dump_json(), *LINES, ""])
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=written))
        return main(), written.getvalue()

    return answer


def test_the_model_is_the_answer(learned, capfd):
    settings = TokenizerSettings(vocabulary=60)
    assert learned(settings) == (0, learn_tokenizer(LINES, settings).model)
    assert "size=" in capfd.readouterr().err


def test_a_user_s_error_is_the_answer_with_its_exit_code(learned):
    code, words = learned(TokenizerSettings(vocabulary=100_000))
    assert code == 2
    assert b"tokenizer.vocabulary = 100000" in words
