import numpy as np
import pytest
from unit.diagnosis.learning_run import figure, learned
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.diagnosis.answers.learning_rate import answer, compare_rates
from dragoman.diagnosis.run.facts import read_facts
from dragoman.telemetry.events import Incident


def asked(tmp_path, *settings, steps=20_000):
    return learned(tmp_path / "run", [], every=1000, steps=steps, settings=settings).asked(answer)


def test_noam_is_explained_right(tmp_path):
    found = asked(tmp_path, "schedule.warmup_steps=8000")
    assert (found.verdict, found.confidence) == ("as set", "high")
    for words in (
        "Noam",
        "straight line for 8,000 steps",
        "peak of 9.88e-4 at step 8,000",
        "inverse square root",
        "schedule.scale = 2 is a factor and not a rate",
        "does not react to the loss",
    ):
        assert words in found.sentence
    assert figure(found, "highest rate as run").value == pytest.approx(9.88e-4, rel=1e-3)
    assert figure(found, "highest rate as run").note == "step 8,000"


def test_a_tail_is_as_set_and_told(tmp_path):
    linear = ["schedule.kind=linear", "schedule.peak=0.002", "training.steps=20000"]
    tail = "schedule.tails=[[12000, 0.0005]]"
    found = asked(tmp_path, *linear, tail, "schedule.warmup_steps=2000")
    assert found.verdict == "as set"
    for words in ("at step 12,000", "after step 12,000 from 5.00e-4", "at step 20,000"):
        assert words in found.sentence


def test_a_run_shorter_than_its_warm_up_shows_the_rise_only(tmp_path):
    found = asked(tmp_path, "schedule.warmup_steps=8000", steps=5000)
    assert found.verdict == "as set"
    peak, last = figure(found, "peak as set"), figure(found, "rate of the last step")
    assert (peak.value, peak.note) == (pytest.approx(9.88e-4, rel=1e-3), "step 8,000")
    assert (last.value, last.note) == (pytest.approx(6.18e-4, rel=1e-3), "step 5,000")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("inverse-square-root", ["inverse square root", "peak of 3.00e-3 at step 1,000"]),
        ("cosine", ["half a cosine to 1.00e-5 (schedule.final) at step 20,000", "3.00e-3"]),
        ("linear", ["falls in a straight line to 1.00e-5", "training.steps"]),
        ("constant", ["stays there", "peak of 3.00e-3 at step 1,000"]),
    ],
)
def test_each_schedule_has_its_words(tmp_path, kind, words):
    found = asked(
        tmp_path,
        f"schedule.kind={kind}",
        "schedule.peak=3e-3",
        "schedule.final=1e-5",
        "schedule.warmup_steps=1000",
    )
    assert found.verdict == "as set"
    assert "straight line for 1,000 steps" in found.sentence
    assert all(word in found.sentence for word in words), found.sentence


def test_a_rate_that_stays_is_what_schedule_free_needs(tmp_path):
    found = asked(
        *(tmp_path, "optimizer.kind=schedule-free", "schedule.kind=constant", "schedule.peak=2e-3"),
        "schedule.warmup_steps=1000",
    )
    assert (found.verdict, found.advice) == ("as set", [])
    assert "optimizer.kind" in found.sentence
    assert "no end has to be planned" in found.sentence
    assert "as this way of training needs it" in found.plain
    assert figure(found, "optimizer").value == "schedule-free"


@pytest.mark.parametrize(("factor", "words"), [(1.0, "the same rate"), (2.5, "2.5 times that")])
def test_both_rates_of_muon_are_explained(tmp_path, factor, words):
    found = asked(
        *(tmp_path, "optimizer.kind=muon", f"optimizer.muon_rate_factor={factor}"),
        "schedule.warmup_steps=8000",
    )
    assert found.verdict == "as set"
    assert words in found.sentence
    assert "optimizer.muon_rate_factor" in found.sentence
    assert figure(found, "rate factor of Muon").value == factor


@pytest.mark.parametrize("kind", ["noam", "inverse-square-root", "cosine", "linear", "constant"])
def test_no_warm_up_is_no_crash(tmp_path, kind):
    found = asked(tmp_path, f"schedule.kind={kind}", "schedule.warmup_steps=0")
    assert found.verdict == "as set"
    assert "straight line for" not in found.sentence


def test_without_steps_the_settings_are_told(tmp_path):
    fake = FakeRun(tmp_path / "run")
    facts = read_facts(fake.directory, read_at=WALL_AT)
    found = answer(facts)
    assert found.verdict == "not known"
    assert "Noam" in found.sentence


STEPS = np.arange(1, 101)
PLANNED = 1e-3 / np.sqrt(STEPS)


def test_other_rates_than_set_are_found():
    rates = np.where(STEPS < 40, PLANNED, 0.7 * PLANNED)
    found = compare_rates(STEPS, rates, PLANNED, rollbacks=0)
    assert (found.deviating, found.first_deviating) == (61, 40)
    assert found.largest == pytest.approx(0.3)


@pytest.mark.parametrize("strange", [np.nan, np.inf, 0.0, -1e-3])
def test_rates_that_make_no_sense_are_found(strange):
    rates = PLANNED.copy()
    rates[9] = strange
    found = compare_rates(STEPS, rates, PLANNED, rollbacks=2)
    assert (found.deviating, found.first_deviating) == (1, 10)


def test_half_the_rate_after_a_rollback_is_explained_and_only_then():
    rates = np.where(STEPS < 40, PLANNED, np.where(STEPS < 70, 0.5, 0.25) * PLANNED)
    told = compare_rates(STEPS, rates, PLANNED, rollbacks=2)
    assert (told.deviating, told.factor, told.factor_since) == (0, 0.25, 70)
    assert compare_rates(STEPS, rates, PLANNED, rollbacks=1).deviating == 31
    assert compare_rates(STEPS, rates, PLANNED, rollbacks=0).deviating == 61
    back = np.where((STEPS > 20) & (STEPS < 40), 0.5, 1.0) * PLANNED
    assert compare_rates(STEPS, back, PLANNED, rollbacks=1).first_deviating == 40


def test_a_rate_of_zero_as_set_is_as_set():
    assert compare_rates(STEPS, np.zeros(100), np.zeros(100), rollbacks=0).deviating == 0


def test_half_the_rate_after_a_rollback_is_on_purpose(tmp_path):
    fake = FakeRun(tmp_path / "run")
    scale = 2.0 / np.sqrt(512)
    rates = {n: scale * n / 8000**1.5 for n in range(1, 5)}
    events = [(0.0, started())]
    events += [(float(n), step(n, learning_rate=rates[n])) for n in (1, 2, 3, 4)]
    rollback = Incident(4, "rollback", "the loss has exploded", rollback_step=2, rate_factor=0.5)
    events.append((4.5, rollback))
    events += [(2.0 + n, step(n, learning_rate=rates[n] / 2)) for n in (3, 4)]
    fake.with_events(events)
    facts = read_facts(fake.directory, read_at=WALL_AT)
    found = answer(facts)
    assert found.verdict == "not as set"
    assert figure(found, "steps that deviate").value == 0
    assert "Since step 3 it is 0.5 times" in found.sentence
    assert found.advice_text == ""


def test_the_rate_of_steps_that_workers_take_alone_is_explained(tmp_path):
    fake = FakeRun(tmp_path / "run")
    fake.directory.config.write_text(fake.directory.config.read_text() + '[sync]\nmode = "local"\n')
    first = step(1, learning_rate=2.0 / np.sqrt(512) / 8000**1.5)
    for rank in (0, 1):
        fake.with_events([(0.0, started(rank=rank, ranks=2)), (1.0, first)], rank=rank)
    sentence = answer(read_facts(fake.directory, read_at=WALL_AT)).sentence
    assert "Each of the 2 workers takes steps of its own" in sentence
    assert "1.41 times that rate (sync.rate_factor)" in sentence


PLATEAU = np.exp(-np.arange(1, 26) / 2)


def with_rate(root, scale, level, settings=(), **more):
    given = ["schedule.warmup_steps=4000", f"schedule.scale={scale}", *settings]
    return learned(root / "run", level + PLATEAU, settings=given, **more).asked(answer)


def test_a_rate_ten_times_too_high_is_as_set_and_too_high(tmp_path):
    found = with_rate(tmp_path, 20.0, 2.6)
    assert found.verdict == "as set"
    assert "too high" in found.sentence
    assert "schedule.scale=2.0" in found.advice[0].command
    level = figure(found, "highest usual rate")
    assert level.value == pytest.approx(2.0 / np.sqrt(512 * 4000))


def test_a_usual_rate_is_not_blamed_for_a_poor_level(tmp_path):
    found = with_rate(tmp_path, 2.0, 2.6)
    assert (found.verdict, list(found.advice)) == ("as set", [])
    assert "too high" not in found.sentence


@pytest.mark.parametrize(
    ("scale", "level", "more", "is_too_high"),
    [
        (6.0, 1.5, {}, False),  # three times the usual, and all is well
        (6.0, 2.6, {}, True),
        (6.0, 1.5, {"skipped": lambda number: number % 300 == 0}, True),
        (12.0, 1.5, {}, False),  # far beyond, but this run shows that it does no harm
        (12.0, 1.5, {"losses": lambda number: 3.0 if number < 20_000 else 8.0}, True),
    ],
)
def test_a_high_rate_is_judged_by_what_happened(tmp_path, scale, level, more, is_too_high):
    found = with_rate(tmp_path, scale, level, **more)
    assert found.verdict == "as set"
    assert bool(found.advice) == is_too_high


def test_a_rate_not_as_set_is_looked_into_with_a_command(tmp_path):
    fake = FakeRun(tmp_path / "run")
    fake.with_events([(0.0, started()), *((float(n), step(n)) for n in range(1, 5))])
    found = answer(read_facts(fake.directory, read_at=WALL_AT))
    assert found.verdict == "not as set"
    assert str(fake.directory.manifest) in found.advice[0].command
