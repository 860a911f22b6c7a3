import copy

import pytest
from unit.report.fake_run import MANIFEST, WALL_AT, FakeRun

from dragoman.diagnosis.answers.training_set import answer
from dragoman.diagnosis.run.facts import read_facts
from dragoman.rundir import write_json


def asked(fake: FakeRun):
    facts = read_facts(fake.directory, read_at=WALL_AT)
    return answer(facts)


def with_train(tmp_path, **changes) -> FakeRun:
    fake = FakeRun(tmp_path / "run")
    manifest = copy.deepcopy(MANIFEST)
    manifest["data"]["splits"]["train"] |= changes
    write_json(fake.directory.manifest, manifest)
    return fake


def side(size: int) -> dict[str, object]:
    return {"file": "", "bytes": size, "tokens": 138_000_000, "unknown_tokens": 0, "lengths": []}


def test_the_size_of_the_stories_is_told_in_megabytes_and_lines(tmp_path):
    fake = with_train(
        tmp_path,
        pairs_in=4_600_000,
        pairs_kept=4_524_868,
        pairs_per_epoch=4_524_868,
        dropped={"duplicate": 70_000, "too long": 5_132},
        source=side(909_000_000),
        target=side(971_000_000),
    )
    found = asked(fake)
    assert found.verdict == "1,880 MB, 4,524,868 lines"
    assert "909 MB en and 971 MB de" in found.sentence
    assert (
        "75,132 of 4,600,000 pairs (1.6 %): 70,000 duplicate and 5,132 too long" in found.sentence
    )
    figures = {figure.name: figure.value for figure in found.evidence}
    assert figures["lines before cleaning"] == 4_600_000
    assert figures["lines after cleaning"] == 4_524_868
    assert figures["tokens, de"] == 138_000_000
    assert found.advice_text == ""


def test_weights_change_what_an_epoch_is(tmp_path):
    found = asked(with_train(tmp_path, pairs_per_epoch=1500))
    assert "an epoch has 1,500 pairs" in found.sentence


def test_nothing_dropped_and_most_dropped(tmp_path):
    none = with_train(tmp_path, pairs_in=990, dropped={})
    assert "Cleaning dropped none" in asked(none).sentence
    (tmp_path / "other").mkdir()
    most = with_train(tmp_path / "other", pairs_in=2000, dropped={"other script": 1010})
    (advice,) = asked(most).advice
    assert "'other script'" in advice.text
    assert advice.command == f"dragoman prepare {most.directory.config} --explain 3"


@pytest.mark.parametrize(
    ("pairs", "words"),
    [(4_524_868, "about 4.5 million"), (29_000, "about 29,000"), (990, "learns from 990 pairs")],
)
def test_a_plain_sentence_has_a_round_number(tmp_path, pairs, words):
    found = asked(with_train(tmp_path, pairs_in=pairs, pairs_kept=pairs, pairs_per_epoch=pairs))
    assert words in found.plain


@pytest.mark.parametrize("manifest", [None, {"data": 5}, {}])
def test_without_a_passport_nothing_is_known(tmp_path, manifest):
    fake = FakeRun(tmp_path / "run")
    if manifest is not None:
        write_json(fake.directory.manifest, manifest)
    assert asked(fake).verdict == "not known"
