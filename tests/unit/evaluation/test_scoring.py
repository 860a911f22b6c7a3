import subprocess
import sys

import pytest

from dragoman.evaluation.scoring import by_length, compare, score, worst

REFERENCE = "der alte Mann sieht den roten Hund im Garten und ruft laut"
WORDS = REFERENCE.split()


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


def test_groups_of_length_hold_every_sentence_once():
    references = [" ".join(WORDS[:3]), REFERENCE, " ".join(WORDS * 5)]
    translations = [references[0], " ".join(["nichts"] * 12), references[2]]
    groups = by_length(translations, references, "de")
    spans = [(group.least_words, group.most_words, group.sentences) for group in groups]
    assert spans == [(0, 10, 1), (11, 20, 1), (51, None, 1)]
    assert [round(group.bleu) for group in groups[1:]] == [0, 100]
    assert all(group.low <= group.bleu <= group.high for group in groups)


def test_the_worst_come_first_and_are_counted_as_lines():
    references = ["ein Haus am See", "ein Baum im Wald", "eine Katze im Sack"]
    translations = ["ein Haus am See", "xyz", "eine Katze in dem Sack"]
    found = worst(translations, references, most=2)
    assert [sentence.number for sentence in found] == [2, 3]
    assert found[0].chrf < found[1].chrf < 100


def test_of_two_systems_the_better_one_is_named_in_every_metric():
    references = [f"{REFERENCE} und das {n} mal" for n in range(80)]
    good = [line.replace("roten", "blauen") for line in references]
    bad = [line.replace("Hund im Garten", "Kater auf dem Dach") for line in references]
    found = compare(good, bad, references, "de")
    assert [each.name for each in found] == ["BLEU", "chrF", "TER"]
    assert all(each.is_better for each in found)
    assert [each.difference.gain > 0 for each in found] == [True, True, False]
    assert all(each.is_better is False for each in compare(bad, good, references, "de"))


def test_equal_systems_are_told_apart_by_no_metric():
    references = [f"{REFERENCE} {n}" for n in range(20)]
    found = compare(references, references, references, "de")
    assert [each.is_better for each in found] == [None] * 3
    assert [each.difference.p for each in found] == pytest.approx([1.0] * 3)
