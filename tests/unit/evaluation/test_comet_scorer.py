import os
import subprocess
import sys

from dragoman.evaluation.comet import PROGRAM
from dragoman.evaluation.comet_scorer import answer_to, reason


def test_an_empty_question_is_answered_with_what_is_missing(monkeypatch):
    found = {"comet": None, "pkg_resources": object()}
    monkeypatch.setattr("dragoman.evaluation.comet_scorer.find_spec", found.get)
    assert answer_to({"rows": []}) == {"missing": ["comet"]}


def test_a_reason_is_the_class_and_the_first_line():
    assert reason(ValueError("first\nsecond")) == "ValueError: first"
    assert reason(AssertionError()) == "AssertionError"


def test_the_process_ends_when_its_parent_is_gone():
    """Waiting for its question, as it might for anything else."""
    another = os.getppid()
    with subprocess.Popen(
        [sys.executable, PROGRAM, str(another)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.wait() == 1
