"""Each command is given to a shell: what it promises is what the run then does."""

import shlex
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from processes import dragoman

from dragoman.diagnosis.commands import (
    ends_at_once,
    limits_beyond,
    line_for,
    recipe_lines,
    setting_line,
    train_command,
    with_settings,
)
from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.diagnosis.run.record import Start
from dragoman.rundir import RunDir
from dragoman.shards.passport import PASSPORT_NAME

ENDS = {
    "steps": {"training.steps": 4},
    "epochs": {"training.steps": 1000, "training.epochs": 1, "training.tokens_per_update": 1500},
    "hours": {"training.steps": 1000, "training.hours": 1e-7},
    # The loss of the first evaluation is the best one if nothing is learned afterwards.
    "patience": {
        "training.steps": 1000,
        "training.patience": 2,
        "evaluation.every_steps": 1,
        "schedule.peak": 1e-12,
    },
}


def facts(run: Path) -> RunFacts:
    return read_facts(RunDir(run), time.time())


def give_to_a_shell(command: str, folder: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dragoman"
    done = dragoman(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr


def settings(values: dict[str, object]) -> list[str]:
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


@pytest.mark.parametrize(
    "cause",
    ["steps", *(pytest.param(c, marks=pytest.mark.cluster) for c in ENDS if c != "steps")],
)
def test_a_run_goes_on_beyond_the_limit_that_ended_it(
    cause: str, digits: Path, tmp_path: Path
) -> None:
    start = ["dragoman", "train", str(digits), "--run", str(tmp_path / "run")]
    give_to_a_shell(shlex.join([*start, *settings(ENDS[cause])]), tmp_path)
    before = facts(tmp_path / "run")
    ended = int(before.steps["step"][-1])
    assert before.attempts[-1].ends[-1].event.cause == cause

    give_to_a_shell(train_command(before, limits_beyond(before, ended + 4)), tmp_path)

    after = facts(tmp_path / "run")
    done = int(after.steps["step"][-1])
    # How many steps an hour holds is the machine's business.
    assert done > ended if cause == "hours" else done >= ended + 4
    assert len(after.attempts) == 2


def test_what_would_end_at_once_is_started_anew(trained: tuple[Path, Path]) -> None:
    _, run = trained
    found = facts(run)
    assert "training.steps" in ends_at_once(found, found.config)
    assert shlex.split(train_command(found, {"evaluation.beam": 2}))[4] == f"{run}-2"
    goes_on = {"evaluation.beam": 2, "training.steps": 3}
    assert ends_at_once(found, with_settings(found.config, goes_on)) == ""
    assert shlex.split(train_command(found, goes_on))[4] == str(run)


def test_where_no_limit_is_near_the_same_command_goes_on(trained: tuple[Path, Path]) -> None:
    run = facts(trained[1])
    assert limits_beyond(run, 2) == {}
    assert limits_beyond(run, 3) == {"training.steps": 3}


def test_settings_that_make_another_run_get_a_folder_of_their_own(
    trained: tuple[Path, Path],
) -> None:
    _, run = trained
    command = train_command(facts(run), {"training.tokens_per_update": 500, "training.steps": 3})

    give_to_a_shell(command, run.parent)

    new = facts(run.with_name("run-2"))
    assert new.config.training.tokens_per_update == 500
    assert len(new.steps) == 3
    assert len(facts(run).steps) == 2
    assert shlex.split(train_command(facts(run), {}, new_run=True))[4] == f"{run}-3"


def test_other_data_is_prepared_elsewhere_so_that_the_old_run_can_go_on(
    trained: tuple[Path, Path],
) -> None:
    _, run = trained
    before = facts(run)
    passport = before.config.prepared_folder / PASSPORT_NAME
    content = passport.read_bytes()

    give_to_a_shell(train_command(before, {"tokenizer.vocabulary": 64}), run.parent)

    new = facts(run.with_name("run-2"))
    assert new.config.tokenizer.vocabulary == 64
    assert new.config.prepared_folder != before.config.prepared_folder
    assert passport.read_bytes() == content


def test_workers_are_as_many_as_they_were(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    start = ["dragoman", "train", str(digits), "--run", str(run), "--set", "training.steps=2"]
    give_to_a_shell(shlex.join([*start, "--workers", "2", "--oversubscribe"]), tmp_path)

    give_to_a_shell(train_command(facts(run), limits_beyond(facts(run), 3)), tmp_path)

    assert [attempt.ranks for attempt in facts(run).attempts] == [2, 2]
    assert len(facts(run).steps) == 3


def test_hosts_are_those_that_the_user_named(trained: tuple[Path, Path]) -> None:
    run = facts(trained[1])
    options = ["--hosts", "hosts.toml", "--workers", "4"]
    started = replace(run, record=replace(run.record, start=Start([], "dragoman", options)))
    assert shlex.split(train_command(started, {}))[5:] == options


def test_another_launcher_gets_lines_for_its_recipe(trained: tuple[Path, Path]) -> None:
    run = facts(trained[1])
    argv = ["dragoman", "train", "demo.toml"]
    started = replace(run, record=replace(run.record, start=Start(argv, "srun", [])))
    assert train_command(started, limits_beyond(started, 9)) == "training.steps = 9"
    lines = train_command(started, {"model.dropout": 0.3, "tokenizer.vocabulary": 64})
    assert [line.split(" = ")[0] for line in lines.splitlines()] == [
        "data.prepared",
        "model.dropout",
        "tokenizer.vocabulary",
    ]
    give_to_a_shell(train_command(started, {}), trained[1])  # shows what it would go on from


def test_lines_for_a_recipe_of_larger_updates_are_as_before_their_conversion(
    trained: tuple[Path, Path],
) -> None:
    run = facts(trained[1])
    larger = with_settings(run.config, {"sync.mode": "accumulate", "sync.accumulate": 4})
    argv = ["dragoman", "train", "demo.toml"]
    started = replace(run, record=replace(run.record, config=larger, start=Start(argv, "srun", [])))
    assert train_command(started, {"training.steps": 9}) == "training.steps = 36"
    assert line_for(started, "checkpoints.every_steps", 2) == "checkpoints.every_steps = 8"
    assert line_for(run, "checkpoints.every_steps", 2) == "checkpoints.every_steps = 2"


@pytest.mark.parametrize(
    "given",
    [
        *(pytest.param(name, marks=pytest.mark.cluster) for name in (".", "..", "link")),
        "run",
        "absolute",
    ],
)
def test_a_run_is_trained_on_however_it_was_named(
    given: str, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "home" / "run"
    relative = ["--set", "data.prepared=prepared/digits", "--set", "training.steps=2"]
    (tmp_path / "home").mkdir()
    train = ["dragoman", "train", str(digits), "--run", "run", *relative]
    give_to_a_shell(shlex.join(train), run.parent)
    (tmp_path / "link").symlink_to(run)
    asked_in = {".": run, "..": run / "events", "link": tmp_path, "run": run.parent}
    monkeypatch.chdir(asked_in.get(given, tmp_path))

    found = facts(run if given == "absolute" else Path(given))

    assert Path(shlex.split(train_command(found, {}, new_run=True))[-1]).name == "run-2"
    command = train_command(found, limits_beyond(found, 3))
    program = f'dragoman() {{ {shlex.quote(sys.executable)} -m dragoman "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(facts(run).steps) == 3
    assert list(tmp_path.rglob("prepared/digits")) == [tmp_path / "home" / "prepared" / "digits"]


def test_a_path_that_a_shell_would_split_is_quoted(trained: tuple[Path, Path]) -> None:
    odd = trained[1].rename(trained[1].with_name("my run; $HOME"))

    command = train_command(facts(odd), {"schedule.kind": "constant"})

    assert shlex.split(command)[2:5] == [f"{odd}/config.toml", "--run", f"{odd}-2"]


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("training.steps", 20_000, "training.steps = 20000"),
        ("training.precision", "bf16", 'training.precision = "bf16"'),
        ("model.dropout", 0.3, "model.dropout = 0.3"),
    ],
)
def test_a_setting_is_a_line_of_a_recipe(key: str, value: object, line: str) -> None:
    assert setting_line(key, value) == line
    section, _, name = key.partition(".")
    assert tomllib.loads(line)[section][name] == value


def test_lines_of_a_recipe_stand_below_their_tables():
    settings = {"sync.mode": "local", "sync.local_steps": 8, "optimizer.average_decay": 0.0}

    assert recipe_lines(settings) == (
        '[sync]\nmode = "local"\nlocal_steps = 8\n\n[optimizer]\naverage_decay = 0.0'
    )
