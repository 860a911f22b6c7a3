import sys

import pytest

from dragoman.errors import UserError
from dragoman.evaluation.published import published_bleu


def test_case_and_marks_are_those_of_the_published_scripts():
    references = ['ein mann , der "laut" ruft .', "zwei hunde & eine katze - am see ."]
    translations = ["Ein Mann, der „laut“ ruft.", "Zwei Hunde & eine Katze - am See."]
    found = published_bleu(translations, references, "de")
    assert found.score == pytest.approx(100.0)
    assert "tok:none" in found.signature


def test_without_the_tokenizer_its_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UserError, match=r"pip install .*\[moses\]"):
        published_bleu(["a"], ["a"], "de")
