"""`make bench-scaling`: events and samples become figures, figures become tables, corpora grow."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scaling_bench.bench import set_options, steps_by_rank
from scaling_bench.corpora import drawn_pairs, resegmented_pairs, write_corpus
from scaling_bench.figures import (
    FolderSizes,
    TimedStep,
    between,
    bytes_of_lines,
    common_tokens_per_s,
    exposed_communication_s,
    sizes_at,
    step_figures,
    usage_figures,
    window_figures,
)
from scaling_bench.long_run import window_of
from scaling_bench.tables import Column, Section, figure_table, ratio_table
from train_bench.measurement import Usage

from dragoman.batches.merges import Merges
from dragoman.batches.subword_dropout import SubwordDropout
from dragoman.config import load_config
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Stamped, StepDone, to_line

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SECTION = Section(
    "Tokens",
    (Column("tokens_per_s", "target tokens/s", ",.0f"), Column("wait_s", "wait, ms", ".1f", 1e3)),
    [("two", "one")],
    [],
)
RECIPE = """
name = "grow"
[data]
source_language = "en"
target_language = "de"
prepared = "{folder}/prepared"
[[data.train]]
kind = "phrasebook"
pairs = 300
[[data.validation]]
kind = "phrasebook"
pairs = 10
[tokenizer]
vocabulary = 300
[model]
preset = "transformer-tiny"
encoder_layers = 1
decoder_layers = 1
width = 32
heads = 2
filter = 64
[training]
tokens_per_update = 300
micro_batch_tokens = 256
steps = 3
"""


def step(number, at, step_s=1.0, tokens=100, **parts_s):
    parts_s = {"data": 0.0, **parts_s}
    done = StepDone(number, 0.1, 7.0, tokens, 1e-4, 1.0, True, step_s, parts_s)
    return TimedStep(at, done)


def cells_of(table, first_cell):
    (row,) = (line for line in table.splitlines() if line.startswith(f"| {first_cell} |"))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grow")
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(folder=folder))
    prepare(load_config(path))
    return path


def test_speed_is_that_of_the_steps_after_the_warm_up():
    ranks = {0: [step(1, 50.0), step(2, 60.0, 9.0), step(3, 62.0), step(4, 64.0)]}
    figures = step_figures(ranks, warm_up=2)
    assert figures["tokens_per_s"] == pytest.approx(200 / 4)
    assert figures["token_s"] == pytest.approx(4 / 200)
    assert figures["tokens_per_step"] == 100
    assert figures["exposed_s"] == 0, "a single rank has nobody to wait for"


def test_a_run_without_a_counted_step_has_no_figures():
    with pytest.raises(ValueError, match="2 steps"):
        step_figures({0: [step(1, 1.0), step(2, 2.0)]}, warm_up=2)


def test_of_two_ranks_the_slower_counts_and_the_one_that_waits_the_least_for_the_network():
    ranks = {
        0: [step(1, 1.0), step(2, 2.0, 0.9, data=0.1, communication=0.5)],
        1: [step(1, 1.0), step(2, 2.0, 1.1, data=0.3, communication=0.2)],
    }
    figures = step_figures(ranks, warm_up=1)
    assert figures["step_s"] == 1.1
    assert figures["data_s"] == 0.3
    assert figures["exposed_s"] == 0.2
    assert exposed_communication_s([step(1, 1.0).done]) == 0.0


def test_processor_time_and_memory_are_those_of_the_counted_steps():
    lead = [step(1, 10.0), step(2, 12.0), step(3, 14.0)]
    usage = [
        Usage(5.0, 0.0, 1, resident_bytes=900, own_bytes=90),
        Usage(11.0, 12.0, 1, resident_bytes=300, own_bytes=30),
        Usage(13.0, 16.0, 1, resident_bytes=500, own_bytes=50),
        Usage(15.0, 20.0, 1, resident_bytes=400, own_bytes=40),
    ]
    figures = usage_figures(lead, usage, started_at=4.0, warm_up=1)
    assert figures["cpu_s_per_token"] == pytest.approx(8.0 / 200)
    assert figures["first_step_s"] == 6.0
    assert figures["resident_bytes"] == 400, "the median of what is inside"
    assert figures["summed_peak_bytes"] == 900, "whenever it was"
    assert between(usage, 6.0, 7.0) == [usage[0]], "the nearest where there is none"


def test_runs_beside_each_other_count_while_both_take_steps():
    early = [step(n, float(n)) for n in range(1, 6)]  # at 1 to 5 s, 100 tokens/s
    late = [step(n, 2.5 + n) for n in range(1, 6)]  # at 3.5 to 7.5 s
    assert common_tokens_per_s([early, late], warm_up=1) == pytest.approx(200)
    with pytest.raises(ValueError, match="same time"):
        common_tokens_per_s([early, [step(1, 9.0), step(2, 10.0)]], warm_up=1)


def test_steps_of_a_window_are_counted_from_end_to_end():
    steps = [step(n, at, step_s=0.1) for n, at in enumerate((10.0, 11.0, 12.0, 16.0))]
    usage = [Usage(11.5, 0.0, 0, 70, 7), Usage(99.0, 0.0, 0, 1000, 100)]
    figures = window_figures(steps, usage)
    assert (figures["step_median_s"], figures["step_mean_s"]) == (1.0, 2.0)
    assert (figures["resident_bytes"], figures["own_bytes"]) == (70, 7)


@pytest.mark.parametrize(("steps", "window"), [(5000, 1000), (3003, 1000), (303, 100)])
def test_windows_of_a_short_run_do_not_overlap(steps, window):
    assert window_of(steps) == window


def test_bytes_of_events_are_those_of_the_interval():
    lines = [to_line(Stamped(1000.0 + n, float(n), step(n, 0.0).done)).encode() for n in range(4)]
    assert bytes_of_lines([*lines, b"torn"], 0.0, 2.0) == len(lines[1]) + len(lines[2])


def test_the_size_of_a_folder_is_the_last_that_was_seen():
    sizes = [FolderSizes(1.0, 10, 1), FolderSizes(2.0, 20, 2), FolderSizes(3.0, 30, 3)]
    assert sizes_at(sizes, 2.9).run_bytes == 20
    assert sizes_at(sizes, 0.5).run_bytes == 10


def test_ratios_are_taken_within_a_round():
    rounds = [
        {"one": {"tokens_per_s": 100.0, "wait_s": 0.0}, "two": {"tokens_per_s": 150.0}},
        {"one": {"tokens_per_s": 200.0, "wait_s": 0.0}, "two": {"tokens_per_s": 200.0}},
        {"one": {"tokens_per_s": 100.0, "wait_s": 0.0}, "two": {"tokens_per_s": 120.0}},
    ]
    assert cells_of(ratio_table(SECTION, rounds), "two / one") == ["1.20 (1.00 to 1.50)", ""]
    assert cells_of(figure_table(SECTION, rounds), "one") == ["100 (100 to 200)", "0.0"]


def test_a_round_that_was_ended_early_counts_as_far_as_it_got():
    rounds = [
        {"one": {"tokens_per_s": 100.0}, "two": {"tokens_per_s": 200.0}},
        {"one": {"tokens_per_s": 900.0}},
    ]
    assert cells_of(ratio_table(SECTION, rounds), "two / one")[0] == "2.00"
    assert cells_of(figure_table(SECTION, rounds), "one")[0] == "500 (100 to 900)"
    assert "two" not in ratio_table(SECTION, rounds[1:])
    assert "|" not in ratio_table(SECTION, rounds[1:]), "no table without a row"


def test_overrides_become_options_of_the_command():
    assert set_options({"training.steps": 3}) == ["--set", "training.steps=3"]


def test_steps_are_read_from_the_events_of_all_ranks(tmp_path):
    folder = tmp_path / "run" / "events"
    folder.mkdir(parents=True)
    for rank in (0, 1):
        line = to_line(Stamped(1000.0, 50.0 + rank, step(1, 0.0).done))
        (folder / f"attempt-001-rank-000{rank}.jsonl").write_text(line)
    ranks = steps_by_rank(RunDir(tmp_path / "run"))
    assert {rank: steps[0].at for rank, steps in ranks.items()} == {0: 50.0, 1: 51.0}


def test_a_larger_corpus_consists_of_real_pairs_and_passes_for_the_prepared_one(recipe, tmp_path):
    real = PreparedData.open(load_config(recipe).prepared_folder)
    shards = real.shards("train")
    write_corpus(real, tmp_path / "large", drawn_pairs(shards, 1000, seed=1))
    changed = load_config(recipe, {"data.prepared": str(tmp_path / "large")})
    large = prepare(changed)
    large.verify()
    drawn = large.shards("train")
    assert len(drawn) == 1000
    known = {(tuple(source), tuple(target)) for source, target in pairs_of(shards)}
    assert {(tuple(source), tuple(target)) for source, target in pairs_of(drawn)} <= known
    assert large.passport.splits["train"].pairs_per_epoch == 1000
    assert not (tmp_path / "large" / "clean").exists(), "nothing was prepared anew"


def test_pieces_drawn_beforehand_spell_the_same_text(recipe, tmp_path):
    real = PreparedData.open(load_config(recipe).prepared_folder)
    merges = Merges(real.tokenizer().model, "a test")
    pairs = resegmented_pairs(real.shards("train"), SubwordDropout(merges, 0.3, seed=1))
    write_corpus(real, tmp_path / "other", pairs)
    other = PreparedData.open(tmp_path / "other")
    decode = real.tokenizer().decode
    for before, after in itertools.islice(
        zip(pairs_of(real.shards("train")), pairs_of(other.shards("train")), strict=True), 50
    ):
        for one, two in zip(before, after, strict=True):
            assert decode([one.tolist()]) == decode([two.tolist()])
    assert other.shards("train").lengths().sum() > real.shards("train").lengths().sum()


def pairs_of(shards):
    return [shards[number] for number in range(len(shards))]


def test_loading_is_measured_in_a_process_of_its_own(recipe):
    command = [sys.executable, str(BENCHMARKS / "scaling_bench" / "loading.py"), "2", str(recipe)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert {"plan_s", "first_batch_s", "batch_s", "load_cpu_s_per_token"} <= set(figures)
    assert np.isfinite(list(figures.values())).all()
