import pytest
from unit.report.fake_run import WALL_AT, FakeRun

from dragoman.checkpoints.names import CONTENTS
from dragoman.diagnosis.answers.checkpoint_files import answer
from dragoman.diagnosis.run.facts import read_facts

WHOLE = {
    "model__safetensors": 2_000_000,
    "optimizer__safetensors": 4_000_000,
    "state__json": 300,
    "tokenizer__model": 50_000,
    "manifest__json": 700,
}


@pytest.fixture
def fake(tmp_path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def asked(fake: FakeRun):
    return answer(read_facts(fake.directory, read_at=WALL_AT))


def test_every_file_is_named_with_what_it_holds(fake):
    found = asked(fake.with_checkpoint(4, **WHOLE))
    assert (found.verdict, found.confidence) == ("5 files", "high")
    assert "step-00000004" in found.sentence
    for name, holds in CONTENTS.items():
        assert f"{name} ({holds})" in found.sentence
    assert [figure.name for figure in found.evidence][:2] == [
        "optimizer.safetensors",
        "model.safetensors",
    ]
    assert found.advice_text == ""


def test_a_folder_that_lacks_a_file_is_not_called_whole(fake):
    parts = {name: size for name, size in WHOLE.items() if not name.startswith("state")}
    found = asked(fake.with_checkpoint(4, **parts, stray=1))
    assert found.verdict == "5 files"
    assert "lacks state.json" in found.sentence
    assert "stray (unknown)" in found.sentence
    assert "step-00000004" in found.advice_text


def test_without_a_checkpoint_the_files_to_come_are_named(fake):
    found = asked(fake)
    assert found.verdict == "not known"
    assert [(figure.name, figure.value) for figure in found.evidence] == [
        (name, None) for name in CONTENTS
    ]
