"""Which files, and how big: two questions about the same folder."""

import pytest
from unit.report.fake_run import WALL_AT, FakeRun, started

from dragoman.checkpoints.names import CONTENTS
from dragoman.diagnosis.answers import checkpoint_files, checkpoint_size
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


def asked(fake: FakeRun, module):
    facts = read_facts(fake.directory, read_at=WALL_AT)
    return module.answer(facts)


def figures(finding):
    return {figure.name: figure.value for figure in finding.evidence}


def test_every_file_is_named_with_what_it_holds(fake):
    found = asked(fake.with_checkpoint(4, **WHOLE), checkpoint_files)
    assert (found.verdict, found.confidence) == ("5 files", "high")
    assert "step-00000004" in found.sentence
    for name, holds in CONTENTS.items():
        assert f"{name} ({holds})" in found.sentence
    assert [figure.name for figure in found.evidence][:2] == [
        "optimizer.safetensors",
        "model.safetensors",
    ]
    assert found.advice == ""


def test_a_folder_that_lacks_a_file_is_not_called_whole(fake):
    parts = {name: size for name, size in WHOLE.items() if not name.startswith("state")}
    found = asked(fake.with_checkpoint(4, **parts, stray=1), checkpoint_files)
    assert found.verdict == "5 files"
    assert "lacks state.json" in found.sentence
    assert "stray (unknown)" in found.sentence
    assert "step-00000004" in found.advice


def test_the_newest_counts_and_copies_add_up(fake):
    fake.with_checkpoint(2, **WHOLE).with_checkpoint(4, **WHOLE)
    fake.with_events([(0.0, started()), (1.0, CheckpointSaved(4, "step-00000004", 6_051_000, 1.5))])
    found = asked(fake, checkpoint_size)
    assert found.verdict == "6.05 MB"
    assert "2 checkpoints in 12.1 MB are kept" in found.sentence
    assert figures(found)["all of them"] == 2 * sum(WHOLE.values())
    assert figures(found)["weights alone, fp32"] == 2_000_000
    assert figures(found)["time to write one"] == 1.5


def test_without_a_checkpoint_it_is_computed_and_said_to_be(fake):
    size, files = asked(fake, checkpoint_size), asked(fake, checkpoint_files)
    assert (size.verdict, files.verdict) == ("not known", "not known")
    assert "By computation one will take 731 MB" in size.sentence
    assert "60,880,896 parameters" in size.sentence
    assert "if the tokenizer gets all the pieces" in size.sentence
    assert figures(size)["weights alone, fp16"] == 121_761_792
    assert figures(size)["weights alone, int8"] == 60_880_896
    assert "One will be a folder of 5 files" in files.sentence
    assert "if the tokenizer" not in asked(fake.with_manifest(), checkpoint_size).sentence
