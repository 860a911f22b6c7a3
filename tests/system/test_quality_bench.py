"""`make bench-quality`: turns and their clocks, minutes to a level, scores; and once as a whole."""

import gzip
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from quality_bench.candidates import HUGGING_FACE, NAMES, OURS, read_loop_log, read_run
from quality_bench.curve import (
    Evaluation,
    Limits,
    Point,
    Record,
    Spent,
    Step,
    curve_of,
    minutes_to,
    reason_to_end,
    spent_by,
)
from quality_bench.scoring import moses_tokens, plain_score, published_score
from quality_bench.tables import Result, curve_table, level_table, score_table
from quality_bench.task import differences, renamed_sources
from quality_bench.turns import Candidate, Turn, TurnClock, take_turns
from train_bench.environments import VENVS
from train_bench.measurement import Usage

from dragoman.config import load_config
from dragoman.telemetry.events import Evaluated, Stamped, StepDone, to_line

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "multi30k.toml"
PEERS = ROOT / "benchmarks" / "quality_bench" / "peers"
SPENT = Spent(50.0, 1.0, 1.0, 90.0, 2.0, 1.0, 100, 200_000)
LIMITS = Limits(bleu=38.0, minutes=60.0, patience_minutes=10.0)


def points_of(*minutes_and_bleu):
    return [
        Point(100 * number, minutes, 2 * minutes, bleu)
        for number, (minutes, bleu) in enumerate(minutes_and_bleu, start=1)
    ]


def installed(name):
    """The Python of an environment that a benchmark has made before."""
    python = VENVS / name / "bin" / "python"
    if not (VENVS / name / "installed.json").exists():
        pytest.skip(f"{VENVS / name} is not there; `make bench-quality` makes it")
    return python


@pytest.mark.parametrize(
    ("at", "seconds"),
    [(5.0, 0.0), (10.0, 0.0), (12.0, 2.0), (15.0, 5.0), (20.0, 5.0), (31.0, 6.0), (99.0, 15.0)],
)
def test_the_clock_of_a_candidate_stands_still_between_its_turns(at, seconds):
    clock = TurnClock([Turn(10.0, 15.0), Turn(30.0, 40.0)])
    assert clock.seconds(at) == pytest.approx(seconds)
    assert clock.total_s == 15.0


def test_a_candidate_without_a_turn_has_spent_nothing():
    clock = TurnClock([])
    assert clock.total_s == 0.0
    assert spent_by(Record([], []), clock, []) == Spent(*[0.0] * 6, 0, 0)
    assert curve_of(Record([], []), clock, []) == []


def test_a_step_in_which_the_candidate_was_stopped_does_not_count_the_stopped_time():
    clock = TurnClock([Turn(0.0, 60.0), Turn(600.0, 720.0)])
    usage = [
        Usage(0.0, 0.0, 1),
        Usage(60.0, 60.0, 1),
        Usage(600.0, 60.0, 1),
        Usage(720.0, 300.0, 1),
    ]
    record = Record(
        steps=[Step(12.0, 42.0, 10), Step(42.0, 612.0, 20), Step(660.0, 690.0, 30)],
        evaluations=[Evaluation(613.0, 659.0, 2, 20.0), Evaluation(690.0, 720.0, 3, 30.0)],
    )
    assert curve_of(record, clock, usage) == [
        Point(2, pytest.approx(1.0), pytest.approx(30 / 60 + 18 / 60 + 24 / 60), 20.0),
        Point(3, pytest.approx(1.5), pytest.approx(72 / 60 + 60 / 60), 30.0),
    ]
    spent = spent_by(record, clock, usage)
    assert spent.training == pytest.approx(1.5)
    assert spent.evaluation == pytest.approx((46 + 30) / 60)
    assert spent.other == pytest.approx(3.0 - 1.5 - 76 / 60)
    assert spent.training_cpu + spent.evaluation_cpu + spent.other_cpu == pytest.approx(5.0)
    assert (spent.steps, spent.tokens) == (3, 60)


def test_minutes_to_a_level_lie_on_the_line_between_two_evaluations():
    points = points_of((10.0, 20.0), (20.0, 30.0), (30.0, 29.0), (40.0, 34.0))
    assert minutes_to(25.0, points) == pytest.approx(15.0)
    assert minutes_to(30.0, points) == pytest.approx(20.0)
    assert minutes_to(31.5, points) == pytest.approx(35.0), "from the last evaluation below it"
    assert minutes_to(35.0, points) is None


def test_a_level_of_the_first_evaluation_counts_as_reached_then_and_not_before():
    assert minutes_to(10.0, points_of((10.0, 20.0))) == 10.0
    assert minutes_to(10.0, []) is None


@pytest.mark.parametrize(
    ("points", "minutes", "reason"),
    [
        ([], 59.0, ""),
        ([], 60.0, "60 minutes were over"),
        (points_of((10.0, 30.0)), 19.9, ""),
        (points_of((10.0, 30.0), (15.0, 29.0)), 20.0, "10 minutes brought no new best"),
        (points_of((10.0, 30.0), (15.0, 30.1)), 20.0, ""),
        (points_of((10.0, 38.0), (15.0, 30.0)), 16.0, "reached 38 BLEU"),
    ],
)
def test_the_loop_ends_at_its_level_its_limit_or_without_a_new_best(points, minutes, reason):
    found = reason_to_end(points, minutes, LIMITS)
    assert reason in found
    assert bool(found) == bool(reason)


def test_the_published_form_ignores_case_and_the_plain_one_does_not():
    references = ["ein mann fährt rad .", "zwei hunde spielen im schnee ."]
    translations = ["ein mann fährt rad .", "zwei hunde spielen im sand ."]
    score = published_score(translations, references)
    assert score.low <= score.score <= score.high
    assert 50.0 < score.score < 100.0
    assert "tok:none" in score.signature
    assert published_score(references, references).score == pytest.approx(100.0)
    shouted = [line.upper() for line in references]
    plain = plain_score(shouted, references, "de")
    assert plain.score < 20.0
    assert "tok:13a" in plain.signature


def test_lines_become_tokens_as_the_corpus_was_published():
    lines = ["Ein Mann, der „Rad“ fährt – in New-York.", "", "Z.B. zwei Hunde."]
    assert moses_tokens(installed("moses"), lines, "de") == [
        "ein mann , der &quot; rad &quot; fährt - in new-york .",
        "",
        "z.b. zwei hunde .",
    ]


def test_the_table_of_levels_shows_minutes_their_ratio_and_what_was_not_reached():
    results = {
        OURS: Result(points_of((10.0, 30.0), (20.0, 37.0)), SPENT, "done"),
        HUGGING_FACE: Result(points_of((20.0, 30.0), (40.0, 36.0)), SPENT, "done"),
    }
    rows = [line.strip("|").split("|") for line in level_table(results).splitlines()[2:]]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    assert cells["30"] == ["10.0", "20.0", "2.00"]
    assert cells["37"] == ["20.0", "not reached in 50.0", ""]
    assert cells["38"] == ["not reached in 50.0", "not reached in 50.0", ""]
    assert "not scored" in score_table(results)
    assert "| 200 | 20.00 | 40.00 | 37.00 |" in curve_table(results[OURS].points)


def test_other_languages_and_test_sets_are_other_file_names():
    config = load_config(RECIPE)
    assert renamed_sources(config, "", "", "") == []
    overrides = renamed_sources(config, "", "fr", "test_2017_flickr")
    changed = load_config(RECIPE, overrides)
    assert changed.data.target_language == "fr"
    assert changed.data.train[0].target == "train.fr.gz"
    assert changed.data.validation[0].source == "val.en.gz"
    assert changed.data.test[0].target == "test_2017_flickr.fr.gz"
    assert changed.model_copy(update={"data": config.data}) == config


def test_the_report_says_what_the_plain_loop_has_not():
    plain = {
        "model.attention_dropout": 0.0,
        "schedule.kind": "inverse-square-root",
        "schedule.peak": 0.004,
        "schedule.warmup_steps": 400,
        "optimizer.kind": "adamw",
        "optimizer.average_decay": 0.0,
        "optimizer.clip_norm": 1.0,
        "optimizer.weight_decay": 0.0,
        "training.subword_dropout": 0.0,
        "training.r_drop": 0.0,
    }
    assert differences(load_config(RECIPE, plain)) == []
    changes = {
        "optimizer.kind": "muon",
        "training.subword_dropout": 0.1,
        "model.attention_dropout": 0.1,
    }
    found = differences(load_config(RECIPE, plain | changes))
    assert found == ["attention dropout 0.1", "the optimizer muon", "subword dropout 0.1"]


def test_our_own_steps_and_evaluations_are_read_from_the_events(tmp_path):
    events = tmp_path / "run" / "events"
    events.mkdir(parents=True)
    step = StepDone(1, 0.1, 7.0, 3600, 1e-4, 1.0, True, 1.5)
    evaluated = Evaluated(1, 3.0, None, 31.5, 50.0, "", "", True, 4.0)
    lines = [to_line(Stamped(1000.0, 50.0, step)), to_line(Stamped(1004.0, 54.5, evaluated))]
    (events / "attempt-001-rank-0000.jsonl").write_text("".join(lines))
    assert read_run(tmp_path / "run") == Record(
        [Step(48.5, 50.0, 3600)], [Evaluation(50.5, 54.5, 1, 31.5)]
    )


def test_those_of_the_loop_are_read_from_its_log_up_to_the_last_whole_line(tmp_path):
    log = tmp_path / "log.jsonl"
    assert read_loop_log(log) == Record([], [])
    records = [
        {"kind": "step", "begin": 1.0, "step": 1, "tokens": 9, "end": 2.0},
        {"kind": "evaluation", "begin": 2.0, "step": 1, "bleu": 0.5, "end": 3.0},
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"kind": "st')
    assert read_loop_log(log) == Record([Step(1.0, 2.0, 9)], [Evaluation(2.0, 3.0, 1, 0.5)])


def test_only_one_candidate_runs_at_a_time(tmp_path):
    script = (
        "import time\n"
        "for _ in range(40):\n"
        "    print(time.monotonic(), flush=True)\n"
        "    time.sleep(0.005)\n"
    )
    candidates = [
        Candidate(name, [sys.executable, "-c", script], tmp_path / name, {}) for name in ("a", "b")
    ]
    turns_taken = []
    take_turns(candidates, 0.05, lambda candidate: turns_taken.append(candidate.name))
    assert turns_taken[:4] == ["a", "b", "a", "b"]
    for candidate in candidates:
        assert candidate.exit_code == 0
        instants = [float(line) for line in candidate.output.read_text().split()]
        assert len(instants) == 40
        for at in instants:
            assert any(turn.begin <= at <= turn.end for turn in candidate.turns)
    turns = sorted(turn for candidate in candidates for turn in candidate.turns)
    assert all(one.end <= other.begin for one, other in pairwise(turns))


def test_a_candidate_is_stopped_and_ended_with_its_children(tmp_path):
    child = [sys.executable, "-c", "import time; time.sleep(600)"]
    script = f"import subprocess; p = subprocess.Popen({child}); print(p.pid, flush=True); p.wait()"
    candidate = Candidate("parent", [sys.executable, "-c", script], tmp_path / "output", {})
    try:
        while not candidate.turns or not candidate.output.read_text():
            candidate.take_turn(0.05)
        process = psutil.Process(int(candidate.output.read_text()))
        assert process.status() == psutil.STATUS_STOPPED
        assert process.parent().status() == psutil.STATUS_STOPPED
        candidate.take_turn(0.05)
        assert candidate.exit_code is None, "it went on, and was stopped again"
    finally:
        candidate.end()
    assert candidate.exit_code == -9
    psutil.wait_procs([process], timeout=60)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_benchmark_that_is_ended_ends_all_that_it_has_started(tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    candidates = [Candidate(name, command, tmp_path / name, {}) for name in ("a", "b")]

    def interrupt(candidate):
        if candidate.name == "b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_turns(candidates, 0.05, interrupt)
    assert [candidate.exit_code for candidate in candidates] == [-9, -9]
    assert all(candidate.was_cut_off for candidate in candidates)


def test_scripts_of_other_environments_import_nothing_of_this_project():
    scripts = list(PEERS.glob("*.py"))
    assert len(scripts) == 2
    for script in scripts:
        assert "import dragoman" not in script.read_text()
        assert "from dragoman" not in script.read_text()
        assert "quality_bench" not in script.read_text()


@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_both_train_in_turns_and_translate_the_test_set(tmp_path):
    for name in ("loops", "moses"):
        installed(name)
    words = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
    splits = {"train": range(400), "val": range(400, 404), "test_2016_flickr": range(404, 408)}
    for split, numbers in splits.items():
        for language in ("en", "de"):
            digits = ([int(digit) for digit in f"{7919 * n:07}"] for n in numbers)
            shown = {"en": str, "de": lambda d: words[d]}[language]
            lines = [" ".join(map(shown, row)) + "\n" for row in digits]
            (tmp_path / f"{split}.{language}.gz").write_bytes(
                gzip.compress("".join(lines).encode())
            )
    settings = {
        **{"cleaning.duplicates": "keep", "cleaning.drop_leaks": "false"},
        **{"cleaning.max_ratio": 100, "cleaning.scripts": "false"},
        **{"tokenizer.vocabulary": 60, "model.encoder_layers": 1, "model.decoder_layers": 1},
        **{"model.width": 16, "model.filter": 32, "training.steps": 6},
        **{"training.tokens_per_update": 200, "evaluation.every_steps": 3},
    }
    command = [sys.executable, str(ROOT / "benchmarks" / "quality.py"), "--data", str(tmp_path)]
    command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command += ["--evaluate-every", "4", "--limit-minutes", "0.001", "--turn-s", "2"]
    command += ["--keep", str(tmp_path / "kept")]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NAMES[OURS]} ended: the steps of its recipe were done" in done.stdout
    assert f"{NAMES[HUGGING_FACE]} ended: its 0.001 minutes were over" in done.stdout
    assert "not scored" not in done.stdout
    kept = {name: json.loads((tmp_path / "kept" / f"{name}.json").read_text()) for name in NAMES}
    assert [point["step"] for point in kept[OURS]["points"]] == [3, 6]
    assert kept[HUGGING_FACE]["points"]
    turns = sorted((t["begin"], t["end"]) for one in kept.values() for t in one["turns"])
    assert all(one[1] <= other[0] for one, other in pairwise(turns))
