import pytest
from unit.diagnosis.learning_run import figure, learned
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.diagnosis.answers.loss_spikes import answer
from dragoman.diagnosis.run.facts import read_facts


def test_a_calm_run_is_not_spoken_of(tmp_path):
    assert learned(tmp_path / "run", [2.0] * 30).asked(answer) is None


def test_spikes_are_named(tmp_path):
    run = learned(
        tmp_path / "run",
        [2.0] * 50,
        losses=lambda number: 9.0 if number in (20_000, 30_000) else 3.0,
    )
    found = run.asked(answer)
    assert found is not None
    assert found.verdict == "spikes"
    assert figure(found, "loss spikes").value == 2
    assert figure(found, "highest spike").value == pytest.approx(6.0)
    assert all(step in found.sentence for step in ("20,000", "30,000"))


def test_a_diverged_run_gets_advice(tmp_path):
    run = learned(
        tmp_path / "run", [2.0] * 50, losses=lambda number: 3.0 if number < 40_000 else 8.0
    )
    found = run.asked(answer)
    assert found is not None
    assert (found.verdict, found.confidence) == ("diverged", "high")
    assert figure(found, "diverged since step").value == pytest.approx(40_000, abs=5000)
    assert figure(found, "training loss before").value == pytest.approx(3.0)
    assert figure(found, "training loss at the end").value == pytest.approx(8.0)
    assert "schedule.scale=1.0" in found.advice[0].command


def test_skipped_updates_are_counted(tmp_path):
    fake = FakeRun(tmp_path / "run")
    skipped = (4, 5, 9)
    events = [(float(n), step(n, updated=n not in skipped)) for n in range(1, 12)]
    fake.with_events([(0.0, started()), *events])
    facts = read_facts(fake.directory, read_at=WALL_AT)
    found = answer(facts)
    assert found is not None
    assert found.verdict == "skipped updates"
    updates = figure(found, "skipped updates")
    assert (updates.value, updates.note) == (3, "at most 2 in a row")
    assert "between steps 4 and 9" in found.sentence


def test_many_skipped_updates_are_complained_of(tmp_path):
    run = learned(tmp_path / "run", [2.0] * 25, skipped=lambda number: number % 300 == 0)
    found = run.asked(answer)
    assert found is not None
    assert (found.verdict, found.confidence) == ("skipped updates", "high")
    assert figure(found, "skipped updates, of all").value == pytest.approx(1 / 3, abs=0.01)
    assert "schedule.scale=1.0" in found.advice[0].command
    assert "a lot" in found.plain


def test_fp16_is_left_first_where_updates_are_skipped(tmp_path):
    run = learned(
        tmp_path / "run",
        [2.0] * 25,
        skipped=lambda number: number % 300 == 0,
        settings=["training.precision=fp16"],
    )
    found = run.asked(answer)
    assert found is not None
    assert "bf16" in found.advice[0].command


def test_a_few_skipped_updates_need_nothing(tmp_path):
    run = learned(tmp_path / "run", [2.0] * 25, skipped=lambda number: number == 3000)
    found = run.asked(answer)
    assert found is not None
    assert not found.advice


def test_many_spikes_are_clipped(tmp_path):
    spikes = (10_000, 20_000, 30_000, 40_000)
    run = learned(
        tmp_path / "run", [2.0] * 50, losses=lambda number: 9.0 if number in spikes else 3.0
    )
    found = run.asked(answer)
    assert found is not None
    assert "optimizer.clip_norm=1.0" in found.advice[0].command
