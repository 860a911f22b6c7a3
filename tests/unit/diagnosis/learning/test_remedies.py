import shlex
import subprocess

import pytest
from unit.diagnosis.learning_run import learned
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.config import load_config
from dragoman.diagnosis.learning import remedies
from dragoman.diagnosis.run.facts import read_facts
from dragoman.telemetry.events import AttemptEnded
from dragoman.training.claim import incompatible_changes

WARM_UP = "schedule.warmup_steps=2000"
FALLING = [3.0, 2.5, 2.2, 2.0]


def settings_of(command):
    words = shlex.split(command)
    return dict(
        words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--set"
    )


def folder_of(command):
    words = shlex.split(command)
    return words[words.index("--run") + 1]


@pytest.mark.parametrize(
    ("cause", "settings", "changed"),
    [
        ("steps", [], {"training.steps": "5000"}),
        ("epochs", ["training.epochs=2"], {"training.steps": "5000", "training.epochs": "3"}),
        ("patience", ["training.steps=9000", "training.patience=3"], {"training.patience": "5"}),
    ],
)
def test_a_run_is_trained_on_past_what_ended_it(tmp_path, cause, settings, changed):
    run = learned(
        tmp_path / "run",
        FALLING,
        bleu=[10.0, 9.0, 9.0, 9.0],
        settings=settings,
        cause=cause,
        checkpoints=[4000],
        steps=4000,
        epochs=2.0,
    )
    (advice,) = remedies.train_on(run.facts, 4800, "it falls")
    assert settings_of(advice.command) == changed
    assert folder_of(advice.command) == str(tmp_path / "run")
    assert "from the checkpoint of step 4,000" in advice.text
    words = shlex.split(advice.command)
    overrides = [f"{key}={value}" for key, value in changed.items()]
    again = load_config(run.facts.record.directory.config, overrides)
    assert words[2] == str(run.facts.record.directory.config)
    assert incompatible_changes(run.facts.config, again) == []


def test_hours_are_raised_beyond_what_was_spent(tmp_path):
    run = learned(tmp_path / "run", FALLING, settings=["training.hours=0.02"], cause="hours")
    (advice,) = remedies.train_on(run.facts, 5000, "it falls")
    assert float(settings_of(advice.command)["training.hours"]) > run.facts.wall_s / 3600


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_schedule_with_an_end_needs_a_new_run(tmp_path, kind):
    run = learned(tmp_path / "run", FALLING, settings=[f"schedule.kind={kind}"], checkpoints=[4000])
    (advice,) = remedies.train_on(run.facts, 5000, "it falls")
    assert folder_of(advice.command) == f"{tmp_path / 'run'}-2"
    assert "new run" in advice.text


def test_a_run_that_goes_on_needs_no_advice_to_do_so(tmp_path):
    assert remedies.train_on(learned(tmp_path / "run", FALLING, ended="").facts, 9000, "x") == []


def test_a_run_that_would_fail_again_at_the_same_step_is_not_trained_on(tmp_path):
    fake = FakeRun(tmp_path / "run")
    for number in (1, 2, 3):
        fake.with_events(
            [
                (0.0, started(attempt=number)),
                (1.0, step(1)),
                (2.0, AttemptEnded(1, "failed", "ValueError: odd", "error")),
            ],
            attempt=number,
        )
        run = read_facts(fake.directory, read_at=WALL_AT + 10_000)
        assert bool(remedies.train_on(run, 100, "x")) == (number < 3)


def test_a_rate_is_lowered_in_a_new_run(tmp_path):
    run = learned(tmp_path / "run", FALLING, settings=["schedule.scale=20.0", WARM_UP]).facts
    command = remedies.lower_the_rate(run, "x").command
    assert folder_of(command) == f"{tmp_path / 'run'}-2"
    lowered = load_config(run.record.directory.config, _overrides(command))
    assert (lowered.schedule.scale, lowered.optimizer.clip_norm) == (2.0, 1.0)


def test_a_larger_model_is_larger(tmp_path):
    run = learned(tmp_path / "run", FALLING, settings=["model.preset=transformer-small"]).facts
    (advice,) = remedies.larger_model(run, "x")
    larger = load_config(run.record.directory.config, _overrides(advice.command)).model
    assert (larger.width, larger.filter, larger.encoder_layers) == (512, 2048, 6)
    base = learned(tmp_path / "base", FALLING).facts
    assert remedies.larger_model(base, "x") == []


def test_a_larger_model_of_a_deep_encoder_has_one_too(tmp_path):
    settings = ["model.preset=transformer-tiny-deep-shallow"]
    run = learned(tmp_path / "run", FALLING, settings=settings).facts
    (advice,) = remedies.larger_model(run, "x")
    larger = load_config(run.record.directory.config, _overrides(advice.command)).model
    assert (larger.width, larger.encoder_layers, larger.decoder_layers) == (512, 12, 1)


def test_the_rate_of_schedule_free_is_lowered_where_it_is_set(tmp_path):
    settings = ["optimizer.kind=schedule-free", "schedule.kind=constant", "schedule.peak=0.1"]
    run = learned(tmp_path / "run", FALLING, settings=[*settings, WARM_UP]).facts
    lowered = load_config(
        run.record.directory.config, _overrides(remedies.lower_the_rate(run, "x").command)
    )
    assert lowered.optimizer.kind == "schedule-free"
    assert lowered.schedule.peak < 0.05


@pytest.mark.parametrize(("now", "more"), [(0.1, 0.3), (0.3, 0.4), (0.6, 0.6)])
def test_more_dropout_is_more_and_not_too_much(tmp_path, now, more):
    run = learned(tmp_path / "run", FALLING, settings=[f"model.dropout={now}"]).facts
    changed = load_config(
        run.record.directory.config, _overrides(remedies.more_dropout(run, "x").command)
    )
    assert changed.model.dropout == more


def test_only_fp16_gets_another_precision(tmp_path):
    half = learned(tmp_path / "half", FALLING, settings=["training.precision=fp16"]).facts
    (advice,) = remedies.another_precision(half, "x")
    assert settings_of(advice.command) == {"training.precision": '"bf16"'}
    assert remedies.another_precision(learned(tmp_path / "run", FALLING).facts, "x") == []


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_leaks_are_counted_by_the_shell(tmp_path, suffix):
    for name, lines in (("train.en", "a b\nc\nd\nc\n"), ("test.en", "c\nd\nx\n")):
        (tmp_path / name).write_text(lines)
        if suffix:
            subprocess.run(["gzip", tmp_path / name], check=True)
    given = {
        "data.folder": str(tmp_path),
        "data.train": [
            {"kind": "text", "source": f"train.en{suffix}", "target": f"train.de{suffix}"}
        ],
        "data.test": [{"kind": "text", "source": f"test.en{suffix}", "target": "test.de"}],
    }
    run = learned(tmp_path / "run", FALLING, settings=given).facts
    command = remedies.find_leak(run, "test", "x").command
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


def test_pairs_are_shown_side_by_side(tmp_path):
    (tmp_path / "train.en").write_text("a\n")
    (tmp_path / "train.de").write_text("ein\n")
    run = learned(tmp_path / "run", FALLING, settings={"data.folder": str(tmp_path)}).facts
    command = remedies.inspect_pairs(run, "x").command
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "a\tein\n"


def test_data_that_is_elsewhere_is_left_to_preparation(tmp_path):
    given = {"data.train": [{"kind": "mtdata", "name": "Statmt-europarl_wmt13-7-deu-eng"}]}
    run = learned(tmp_path / "run", FALLING, settings=given).facts
    for advice in (remedies.inspect_pairs(run, "x"), remedies.find_leak(run, "test", "x")):
        assert advice.command == f"dragoman prepare {tmp_path / 'run' / 'config.toml'} --explain 3"


def test_leaks_are_dropped_where_they_were_kept(tmp_path):
    assert remedies.without_leaks(learned(tmp_path / "run", FALLING).facts, "x") == []
    kept = learned(tmp_path / "kept", FALLING, settings=["cleaning.drop_leaks=false"]).facts
    (advice,) = remedies.without_leaks(kept, "x")
    changed = load_config(kept.record.directory.config, _overrides(advice.command))
    assert changed.cleaning.drop_leaks
    assert changed.prepared_folder != kept.config.prepared_folder  # the old run keeps its data


def _overrides(command):
    return [f"{key}={value}" for key, value in settings_of(command).items()]


def test_where_the_text_says_a_run_ends_is_where_its_command_ends_it(tmp_path):
    run = learned(tmp_path / "run", FALLING, settings=["training.steps=9000"], cause="patience")
    (own_limit,) = remedies.train_on(run.facts, 5000, "it falls")
    assert "to step 9,000" in own_limit.text
    assert settings_of(own_limit.command) == {}
    (raised,) = remedies.train_on(run.facts, 12_000, "it falls")
    assert "to step 12,000" in raised.text
    assert settings_of(raised.command) == {"training.steps": "12000"}


def test_too_few_evaluations_are_to_be_more(tmp_path):
    few = learned(tmp_path / "few", [3.0, 2.9], every=1000)
    (advice,) = remedies.evaluate_more(few.facts, 6)
    assert advice.command.startswith("evaluation.every_steps = ")
    assert int(advice.command.split()[-1]) <= 500
    assert remedies.evaluate_more(learned(tmp_path / "many", FALLING * 3).facts, 6) == []


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_shorter_warm_up_brings_no_rate_that_is_too_high(tmp_path, scale):
    settings = ["schedule.warmup_steps=20000", f"schedule.scale={scale}"]
    run = learned(tmp_path / "run", FALLING, settings=settings)
    changed = settings_of(remedies.shorter_warm_up(run.facts, 4000).command)
    assert changed["schedule.warmup_steps"] == "200"
    assert ("schedule.scale" in changed) == (scale > 2)
