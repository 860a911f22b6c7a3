from unit.diagnosis.learning_run import learned
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.diagnosis.answers.loss_spikes import finding
from dragoman.diagnosis.run.facts import read_facts


def test_a_calm_run_is_not_spoken_of(tmp_path):
    assert learned(tmp_path / "run", [2.0] * 30).asked(finding) is None


def test_spikes_are_named(tmp_path):
    run = learned(
        tmp_path / "run",
        [2.0] * 50,
        losses=lambda number: 9.0 if number in (20_000, 30_000) else 3.0,
    )
    found = run.asked(finding)
    assert found is not None
    assert found.verdict == "spikes"
    assert "2 times, at steps 20,000 and 30,000" in found.sentence
    assert "6.00 nats" in found.sentence


def test_a_diverged_run_gets_advice(tmp_path):
    run = learned(
        tmp_path / "run", [2.0] * 50, losses=lambda number: 3.0 if number < 40_000 else 8.0
    )
    found = run.asked(finding)
    assert found is not None
    assert (found.verdict, found.confidence) == ("diverged", "high")
    assert "schedule.scale" in found.advice


def test_skipped_updates_are_counted(tmp_path):
    fake = FakeRun(tmp_path / "run")
    skipped = (4, 5, 9)
    events = [(float(n), step(n, updated=n not in skipped)) for n in range(1, 12)]
    fake.with_events([(0.0, started()), *events])
    facts = read_facts(fake.directory, read_at=WALL_AT)
    found = finding(facts)
    assert found is not None
    assert found.verdict == "skipped updates"
    assert "3 updates were skipped" in found.sentence
    assert "between steps 4 and 9" in found.sentence
    assert "at most 2 in a row" in [figure.note for figure in found.evidence]
