import math

import numpy as np
import pytest
from unit.diagnosis.learning_run import EVALUATION_S, STEP_S, figure, learned, noise
from unit.report.fake_run import CONFIG

from dragoman.config import parse_config
from dragoman.diagnosis.answers.trained import answer, phase_of, verdict_in
from dragoman.diagnosis.learning.convergence import forecast_of

PLATEAU = 1.5 + 0.5 * np.exp(-np.arange(1, 26) / 2)


def story_c():
    """1.60 to 1.58 over the last 10,000 of 50,000 steps."""
    steps = np.arange(2, 51, 2)
    exponent = 0.5
    amount = 0.02 / (40.0**-exponent - 50.0**-exponent)
    return 1.58 + amount * (steps**-exponent - 50.0**-exponent), amount, exponent


def test_story_c_learns_what_the_next_10000_steps_bring(tmp_path):
    losses, amount, exponent = story_c()
    run = learned(tmp_path / "run", losses + noise(25, 0.001, 1), every=2000)
    found = run.asked(answer)
    assert (found.verdict, found.confidence) == ("not yet", "high")
    gain = figure(found, "expected gain of the next 10,000 steps")
    truth = amount * (50.0**-exponent - 60.0**-exponent)
    assert gain.value == pytest.approx(truth, rel=0.25)
    assert gain.low < truth < gain.high
    assert figure(found, "steps for it").value == 12_500


@pytest.mark.parametrize(("cause", "is_limit"), [("steps", True), ("hours", True), ("", False)])
def test_an_end_by_a_limit_says_nothing_about_the_model(tmp_path, cause, is_limit):
    run = learned(tmp_path / "run", story_c()[0], ended="such was the end", cause=cause)
    assert ("such was the end" in run.asked(answer).sentence) == is_limit


def test_a_loss_at_rest_is_trained(tmp_path):
    found = learned(tmp_path / "run", PLATEAU + noise(25, 0.003, 2)).asked(answer)
    assert found.verdict == "yes"
    assert found.advice_text == ""


def test_hours_and_money_follow_from_the_pace(tmp_path):
    losses, _, _ = story_c()
    settings = ["cost.host_per_hour=3.0", "cost.currency='EUR'"]
    found = learned(tmp_path / "run", losses, every=100, settings=settings).asked(answer)
    # Of ten steps to an evaluation, each stands for ten.
    step_s = STEP_S + EVALUATION_S / 10
    assert figure(found, "time for it").value == pytest.approx(625 * step_s, rel=0.05)
    cost = figure(found, "cost of it")  # of two hosts
    assert cost.value == pytest.approx(2 * 3.0 * 625 * step_s / 3600, rel=0.05)
    assert cost.unit == "EUR"
    assert "EUR" in found.sentence
    assert figure(found, "tokens for it").value == pytest.approx(625 * 1000)


def test_no_price_no_cost(tmp_path):
    found = learned(tmp_path / "run", PLATEAU).asked(answer)
    assert "cost of it" not in [each.name for each in found.evidence]


def test_bleu_is_promised_as_far_as_it_followed_the_loss(tmp_path):
    losses, _, _ = story_c()
    run = learned(tmp_path / "run", losses, bleu=60 - 20 * losses + noise(25, 0.02, 3))
    found = run.asked(answer)
    gain, bleu = figure(found, "expected gain in loss"), figure(found, "expected gain in BLEU")
    assert bleu.value == pytest.approx(20 * gain.value, rel=0.1)


@pytest.mark.parametrize("count", [1, 5])
def test_few_evaluations_say_how_many_are_missing(tmp_path, count):
    found = learned(tmp_path / "run", PLATEAU[:count]).asked(answer)
    assert (found.verdict, found.confidence) == ("too early to say", "none")
    assert f"After {6 - count} more evaluation" in found.sentence


def test_without_evaluations_nothing_is_known(tmp_path):
    found = learned(tmp_path / "run", [], steps=1000).asked(answer)
    assert (found.verdict, found.confidence) == ("not known", "none")


def test_a_warm_up_is_too_early(tmp_path):
    settings = ["schedule.warmup_steps=30000"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert found.verdict == "too early to say"
    assert "5,000 more steps" in found.sentence


def test_a_warm_up_longer_than_the_training_is_named(tmp_path):
    settings = ["schedule.warmup_steps=900000"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert "schedule.warmup_steps = 900,000" in found.sentence
    assert ["schedule.warmup_steps=" in command for command in commands(found)] == [True]


def test_evaluations_of_the_warm_up_do_not_count(tmp_path):
    settings = ["schedule.warmup_steps=22000"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert figure(found, "evaluations after warm-up").value == 4
    assert found.verdict == "too early to say"


def test_a_plateau_before_the_rate_has_come_down_is_no_end(tmp_path):
    settings = ["schedule.kind=cosine", "training.steps=50000"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings, ended="").asked(answer)
    assert found.verdict == "not yet"
    assert "the loss falls by itself as the rate does" in found.sentence


def test_at_the_end_of_a_cosine_a_longer_one_is_told_of(tmp_path):
    steps = np.arange(1, 31)
    losses = 1.5 + steps**-0.5 - 0.1 * np.clip((steps - 15) / 10, 0.0, 1.0)
    losses[24:] = losses[24]
    found = learned(tmp_path / "run", losses, settings=["schedule.kind=cosine"]).asked(answer)
    assert found.verdict == "yes"
    assert found.confidence == "medium"
    assert "A schedule longer by 25 % of tokens" in found.sentence
    assert found.advice == []  # to train anew would contradict the verdict


def test_a_cosine_that_ends_while_the_loss_falls_was_too_short(tmp_path):
    losses = 1.5 + np.arange(1, 31) ** -0.5 - 0.01 * np.arange(1, 31)
    found = learned(tmp_path / "run", losses, settings=["schedule.kind=linear"]).asked(answer)
    assert found.verdict == "not yet"


def test_rest_at_a_constant_rate_is_said_to_be_that(tmp_path):
    settings = ["schedule.kind=constant"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert (found.verdict, found.confidence) == ("yes", "medium")
    assert "constant rate" in found.sentence


SCHEDULE_FREE = ["optimizer.kind=schedule-free", "schedule.kind=constant"]


def test_schedule_free_at_rest_is_trained_without_a_falling_rate(tmp_path):
    found = learned(tmp_path / "run", PLATEAU, settings=SCHEDULE_FREE).asked(answer)
    usual = learned(tmp_path / "usual", PLATEAU).asked(answer)
    assert (found.verdict, found.confidence) == (usual.verdict, usual.confidence)
    assert found.verdict == "yes"
    assert "can be stopped here" in found.sentence
    assert "falling one" not in found.sentence


def test_schedule_free_that_still_falls_may_stop_at_any_step_and_is_trained_on(tmp_path):
    found = learned(
        tmp_path / "run", story_c()[0], settings=SCHEDULE_FREE, checkpoints=[25_000]
    ).asked(answer)
    assert found.verdict == "not yet"
    assert "no planned end" in found.sentence
    (command,) = commands(found)
    assert f"--run {tmp_path / 'run'} " in command  # and not a new run
    assert "training.steps=" in command


def test_a_run_past_its_best_is_trained_and_told_so(tmp_path):
    steps = np.arange(1, 26)
    validation = 2.0 + np.abs(steps - 10) * 0.02 + noise(25, 0.002, 4)
    found = learned(tmp_path / "run", validation, train_sample=2.0 - 0.03 * steps).asked(answer)
    assert found.verdict == "yes"
    assert "past its best" in found.sentence
    assert "10,000" in found.sentence


def test_past_its_lowest_loss_a_run_whose_bleu_rises_goes_on(tmp_path):
    steps = np.arange(1, 26)
    validation = 2.0 + np.abs(steps - 10) * 0.02 + noise(25, 0.002, 4)
    run = learned(tmp_path / "run", validation, 2.0 - 0.03 * steps, bleu=np.linspace(20, 25, 25))
    found = run.asked(answer)
    assert (found.verdict, found.confidence) == ("not yet", "low")
    assert "BLEU has risen by" in found.sentence
    assert "10,000" in found.sentence


@pytest.mark.parametrize("last", [math.nan, math.inf])
def test_a_loss_that_is_no_number_has_diverged(tmp_path, last):
    found = learned(tmp_path / "run", [*PLATEAU, last]).asked(answer)
    assert found.verdict == "not yet"
    assert "diverged" in found.sentence


def test_validation_and_training_sample_up_together_have_diverged(tmp_path):
    losses = np.concatenate([PLATEAU, [2.0, 2.5, 2.6, 2.6]])
    found = learned(tmp_path / "run", losses, train_sample=losses - 0.1).asked(answer)
    assert found.verdict == "not yet"
    assert "diverged" in found.sentence


def test_a_training_loss_that_ran_away_has_diverged_before_the_next_evaluation(tmp_path):
    run = learned(
        tmp_path / "run", PLATEAU, losses=lambda number: 3.0 if number < 15_000 else 7.0, ended=""
    )
    found = run.asked(answer)
    assert found.verdict == "not yet"
    assert "diverged" in found.sentence
    assert "3.00 to 7.00" in found.sentence


def test_rest_at_the_level_of_guessing_is_not_trained(tmp_path):
    found = learned(tmp_path / "run", 9.4 + noise(25, 0.004, 5)).asked(answer)
    assert (found.verdict, found.confidence) == ("not yet", "high")
    assert "guessing" in found.sentence
    assert found.advice_text


@pytest.mark.parametrize(
    ("kind", "step", "phase"),
    [
        ("cosine", 500, "falling"),
        ("cosine", 1000, "ended"),
        ("linear", 975, "falling"),
        ("linear", 985, "ended"),
        ("constant", 1000, "constant"),
        ("noam", 1000, "endless"),
        ("inverse-square-root", 1000, "endless"),
    ],
)
def test_a_schedule_falls_ends_or_goes_on(kind, step, phase):
    settings = [f"schedule.kind={kind}", "schedule.warmup_steps=0", "training.steps=1000"]
    assert phase_of(parse_config(CONFIG, "x", settings), step) == phase


def test_schedule_free_is_averaged_at_every_step():
    config = parse_config(CONFIG, "x", SCHEDULE_FREE)
    assert {phase_of(config, step) for step in (1, 100, 10_000)} == {"averaged"}


@pytest.mark.parametrize(
    ("phase", "at_rest", "falling"),
    [
        ("endless", ("yes", "high"), ("not yet", "high")),
        ("falling", ("not yet", "medium"), ("not yet", "high")),
        ("ended", ("yes", "high"), ("not yet", "high")),
        ("constant", ("yes", "medium"), ("not yet", "high")),
        ("averaged", ("yes", "high"), ("not yet", "high")),
    ],
)
def test_the_schedule_has_a_say_in_the_verdict(phase, at_rest, falling):
    def verdict(curve):
        steps = np.arange(1.0, 31)
        losses = curve + noise(30, 0.001, 6)
        forecast = forecast_of(steps, losses, np.full(30, np.nan), steps > 0)
        assert forecast is not None
        return verdict_in(phase, forecast)

    assert verdict(1.5) == at_rest
    assert verdict(1.5 + np.arange(1.0, 31) ** -0.5) == falling


def commands(found):
    return [advice.command for advice in found.advice]


def test_five_falling_evaluations_at_the_limit_are_worth_going_on(tmp_path):
    falling = [3.0, 2.5, 2.2, 2.0, 1.9]
    found = learned(tmp_path / "run", falling, checkpoints=[5000]).asked(answer)
    assert found.verdict == "too early to say"
    assert len(found.advice) == 1
    assert "training.steps=7000" in commands(found)[0]  # a quarter more, in whole evaluations
    running = learned(tmp_path / "running", falling, ended="").asked(answer)
    assert not running.advice
    wavering = learned(tmp_path / "wavering", [3.0, 2.5, 2.6, 2.0, 1.9]).asked(answer)
    assert not wavering.advice


def test_a_run_that_ended_in_its_warm_up_goes_on(tmp_path):
    settings = ["schedule.warmup_steps=30000"]
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert "training.steps=36000" in commands(found)[0]


@pytest.mark.parametrize(
    ("cause", "settings", "key"),
    [
        ("steps", [], "training.steps=64000"),
        ("patience", ["training.steps=900000", "training.patience=3"], "training.patience"),
        ("hours", ["training.steps=900000", "training.hours=0.01"], "training.hours"),
        ("epochs", ["training.steps=900000", "training.epochs=2"], "training.epochs=3"),
    ],
)
def test_a_run_that_still_falls_is_trained_on_past_what_ended_it(tmp_path, cause, settings, key):
    losses, _, _ = story_c()
    bleu = np.append(30 - losses[:5], np.full(20, 20.0))
    run = learned(
        tmp_path / "run",
        losses + noise(25, 0.001, 1),
        bleu=bleu,
        every=2000,
        settings=settings,
        cause=cause,
        checkpoints=[50_000],
        epochs=2.0,
        steps=50_000,
    )
    found = run.asked(answer)
    assert found.verdict == "not yet"
    (command,) = commands(found)
    assert key in command
    assert f"--run {tmp_path / 'run'} " in command


def test_an_ended_cosine_that_still_falls_needs_a_new_run(tmp_path):
    losses = 1.5 + np.arange(1, 31) ** -0.5 - 0.01 * np.arange(1, 31)
    run = learned(tmp_path / "run", losses, settings=["schedule.kind=linear"], checkpoints=[30_000])
    (command,) = commands(run.asked(answer))
    assert f"--run {tmp_path / 'run'}-2 " in command
    assert "training.steps=38000" in command


def test_a_cosine_that_was_stopped_is_let_come_to_its_end(tmp_path):
    settings = ["schedule.kind=cosine", "training.steps=50000", "training.patience=3"]
    run = learned(
        tmp_path / "run",
        PLATEAU,
        bleu=np.full(25, 25.0),
        settings=settings,
        cause="patience",
        checkpoints=[25_000],
        steps=25_000,
    )
    (command,) = commands(run.asked(answer))
    assert f"--run {tmp_path / 'run'} " in command
    assert "training.patience=50" in command
    assert "training.steps" not in command


@pytest.mark.parametrize(
    "settings", [[], ["schedule.kind=cosine"], ["schedule.kind=constant"], SCHEDULE_FREE]
)
def test_trained_and_train_again_are_never_said_together(tmp_path, settings):
    found = learned(tmp_path / "run", PLATEAU, settings=settings).asked(answer)
    assert found.verdict == "yes"
    assert not any("dragoman train " in command for command in commands(found))


def test_every_verdict_has_a_plain_sentence_and_explains_its_unit(tmp_path):
    curves = {
        "yes": PLATEAU,
        "not yet": story_c()[0],
        "too early to say": PLATEAU[:4],
        "not known": [],
    }
    for verdict, losses in curves.items():
        found = learned(tmp_path / verdict, losses, steps=25_000).asked(answer)
        assert found.verdict == verdict
        assert found.plain.endswith(".")
        if "nats" in found.sentence:
            assert "surprise" in found.sentence
