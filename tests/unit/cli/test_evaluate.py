import json

import pytest
from processes import dragoman, sentence

pytestmark = pytest.mark.timeout(180)


def test_the_scores_that_are_shown_are_those_in_the_file(trained):
    _, run = trained
    done = dragoman("evaluate", run, "--split", "validation", "--beam", 1)

    assert done.returncode == 0, done.stderr
    scored = json.loads((run / "evaluation-validation.json").read_text())
    head, bleu, chrf = done.stdout.splitlines()[-3:]
    assert (scored["steps"], scored["beam"]) == ([2], 1)
    assert f"validation, {scored['sentences']:,} sentences, beam 1" in head
    interval = f"({scored['bleu_low']:.1f} to {scored['bleu_high']:.1f})"
    assert bleu.split(maxsplit=1)[1].startswith(f"{scored['bleu']:.1f} {interval}")
    assert chrf.split()[1] == f"{scored['chrf']:.1f}"


def test_a_split_that_is_not_there_is_refused(trained):
    _, run = trained
    assert "nowhere" in sentence(dragoman("evaluate", run, "--split", "nowhere"), 2)
    assert not list(run.glob("evaluation-*.json"))
