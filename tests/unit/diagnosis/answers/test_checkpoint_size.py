import pytest
from unit.report.fake_run import WALL_AT, FakeRun, started

from dragoman.diagnosis.answers.checkpoint_size import answer
from dragoman.diagnosis.run.facts import read_facts
from dragoman.telemetry.events import CheckpointSaved

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


def figures(finding):
    return {figure.name: figure.value for figure in finding.evidence}


def test_the_newest_counts_and_copies_add_up(fake):
    fake.with_checkpoint(2, **WHOLE).with_checkpoint(4, **WHOLE)
    fake.with_events([(0.0, started()), (1.0, CheckpointSaved(4, "step-00000004", 6_051_000, 1.5))])
    found = asked(fake)
    assert found.verdict == "6.05 MB"
    assert figures(found)["checkpoints kept"] == 2
    assert figures(found)["all of them"] == 2 * sum(WHOLE.values())
    assert figures(found)["weights alone, fp32"] == 2_000_000
    assert figures(found)["time to write one"] == 1.5


def test_without_a_checkpoint_it_is_computed_and_said_to_be(fake):
    size = asked(fake)
    assert size.verdict == "not known"
    assert figures(size)["checkpoint, forecast"] == 12 * 60_880_896
    assert figures(size)["parameters"] == 60_880_896
    assert "if the tokenizer gets all the pieces" in size.sentence
    assert figures(size)["weights alone, fp16"] == 121_761_792
    assert figures(size)["weights alone, int8"] == 60_880_896
    assert "if the tokenizer" not in asked(fake.with_manifest()).sentence
