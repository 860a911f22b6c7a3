"""`make bench-sync`: variants, whole windows, results that are kept, and tables with a test."""

import random

import numpy as np
import pytest
from scaling_bench.figures import TimedStep
from sync_bench.figures import (
    WARM_UP_STEPS,
    Span,
    planned_span,
    steps_to_train,
    timed_figures,
    whole_windows,
)
from sync_bench.quality import FIXED, Run, Scored, ending_of
from sync_bench.results import Results, settings_hash
from sync_bench.tables import difference_table, faster_place, quality_table, time_table
from sync_bench.timing import MICRO_BATCHES, Place, Timed, update_tokens
from sync_bench.variants import BASE, VARIANTS, chosen_variants, parse_variant, refusal
from train_bench.watch import CandidateError

from dragoman.batches.plan import BatchPlan
from dragoman.evaluation.metrics import bleu_for
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Evaluated, Stamped, StepDone, to_line

WORDS = [f"w{number}" for number in range(300)]
SLOW, FAST = Place(2, "100mbit"), Place(2, "1gbit")


def step(number, at, communication=0.0, tokens=100, **traffic_bytes):
    parts_s = {"data": 0.0, "communication": communication}
    done = StepDone(number, 0.1, 7.0, tokens, 1e-4, 1.0, True, 1.0, parts_s, traffic_bytes)
    return TimedStep(at, done)


def references_of(count, seed):
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(5, 15))) for _ in range(count)]


VALIDATION, TEST = references_of(60, 1), references_of(60, 2)


def scored(share_of_errors, seed, loss=2.0):
    """A run whose translations are the references with that share of wrong words."""
    drawn = random.Random(seed)

    def counts(references):
        translations = [
            " ".join(
                drawn.choice(WORDS) if drawn.random() < share_of_errors else word
                for word in text.split()
            )
            for text in references
        ]
        return bleu_for("de").counts(translations, references)

    return Scored(loss, 1_500_000, counts(VALIDATION), counts(TEST))


def cells_of(table, first_cell):
    (row,) = (line for line in table.splitlines() if line.startswith(f"| {first_cell} |"))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


@pytest.mark.parametrize(
    ("window", "steps", "span"),
    [
        (1, 12, Span(3, 15)),
        (8, 12, Span(8, 24)),
        (12, 12, Span(12, 24)),
        (30, 12, Span(30, 60)),
        (2, 5, Span(4, 10)),
    ],
)
def test_whole_windows_are_counted_after_whole_windows_of_warm_up(window, steps, span):
    planned = planned_span(window, steps)
    assert planned == span
    assert planned.begin >= WARM_UP_STEPS
    assert planned.end - planned.begin >= steps
    assert whole_windows(window, planned) == planned


def test_a_run_that_chooses_its_window_itself_counts_whole_ones_within_the_plan():
    assert whole_windows(8, Span(30, 60)) == Span(32, 56)
    assert whole_windows(1, Span(30, 60)) == Span(30, 60)
    with pytest.raises(ValueError, match="no whole window of 50"):
        whole_windows(50, Span(30, 60))


def test_the_last_step_which_sends_everything_at_once_is_not_counted():
    planned = planned_span(8, 12)
    assert steps_to_train(planned) > whole_windows(8, planned).end == 24


def test_bytes_are_sums_over_whole_windows_and_updates_those_of_the_recipe():
    quiet, last = {"sent": 10.0, "predicted": 0.0}, {"sent": 1030.0, "predicted": 1000.0}
    ranks = {
        rank: [step(n, 10.0 + 2 * n, 1.0 + rank, **(quiet if n % 2 else last)) for n in range(1, 8)]
        for rank in (0, 1)
    }
    figures = timed_figures(ranks, Span(2, 6), updates_per_step=3)
    assert figures["updates"] == 12
    assert figures["token_s"] == pytest.approx(8.0 / 400)
    assert figures["update_s"] == pytest.approx(8.0 / 12)
    assert figures["exposed_s"] == pytest.approx(4 * 1.0 / 12), "of the rank that waits the least"
    assert figures["exposed_share"] == pytest.approx(0.5)
    assert figures["sent_bytes"] == pytest.approx(2080 / 12), "of one node"
    assert figures["sent_over_formula"] == pytest.approx(1.04)
    with pytest.raises(ValueError, match="7 steps instead of 9"):
        timed_figures(ranks, Span(3, 9), 1)


def test_bytes_are_left_out_where_nothing_counts_them():
    figures = timed_figures({0: [step(n, float(n)) for n in range(1, 6)]}, Span(3, 5), 1)
    assert "sent_bytes" not in figures


def test_bytes_count_each_host_once_where_several_ranks_are_on_it():
    counted = {"sent": 100.0, "predicted": 100.0}
    ranks = {rank: [step(n, float(n)) for n in range(1, 6)] for rank in (1, 3)}
    ranks |= {rank: [step(n, float(n), **counted) for n in range(1, 6)] for rank in (0, 2)}
    assert timed_figures(ranks, Span(3, 5), 1)["sent_bytes"] == pytest.approx(100.0)


def test_what_is_finished_is_not_measured_again(tmp_path):
    results = Results(tmp_path / "results")
    settings = {"ranks": 2, "overrides": ["sync.mode=fp32"]}
    measured = []

    def measure():
        measured.append(1)
        return {"validation_loss": 2.5, "translations": ["ein „Mann“"]}

    first = results.find_or_measure("quality-fp32", settings, measure)
    again = Results(tmp_path / "results").find_or_measure("quality-fp32", settings, measure)
    assert first == again
    assert len(measured) == 1
    results.find_or_measure("quality-fp32", settings | {"ranks": 4}, measure)
    assert len(measured) == 2, "other settings are another result"
    assert results.find("quality-bf16", settings) is None


def test_a_measurement_that_fails_leaves_nothing_behind(tmp_path):
    results = Results(tmp_path / "results")

    def fail():
        raise CandidateError("no")

    with pytest.raises(CandidateError):
        results.find_or_measure("quality-fp32", {}, fail)
    assert results.find("quality-fp32", {}) is None


def test_the_hash_does_not_depend_on_the_order_of_settings():
    assert settings_hash({"a": 1, "b": [2]}) == settings_hash({"b": [2], "a": 1})
    assert settings_hash({"a": 1, "b": [2]}) != settings_hash({"a": 1, "b": [3]})


def test_all_are_compared_with_exact_sums_which_come_first():
    assert list(chosen_variants(["bf16"], {})) == [BASE, "bf16"]
    assert list(chosen_variants(["bf16", BASE], {"own": {}})) == [BASE, "bf16", "own"]
    assert list(chosen_variants(list(VARIANTS), {})) == list(VARIANTS)


def test_a_variant_of_the_users_own_is_read_from_keys_of_sync():
    assert parse_variant("short:mode=local,sync.local_steps=4") == (
        "short",
        {"sync.mode": "local", "sync.local_steps": "4"},
    )
    for text in ("short", "short:", ":mode=local", "short:mode"):
        with pytest.raises(ValueError, match="KEY=VALUE"):
            parse_variant(text)


def test_a_variant_that_the_recipe_refuses_is_named_with_the_reason():
    recipe = shipped_recipe("multi30k")
    own = parse_variant("short:mode=local,local_steps=4")[1]
    assert "average_decay" in refusal(recipe, own)
    for variant in (VARIANTS[BASE], VARIANTS["bf16"], VARIANTS["accumulate-4"], own):
        assert refusal(recipe, {**FIXED, **variant}) == ""
    assert "unheard-of" in refusal(recipe, {**FIXED, "sync.mode": "unheard-of"})


def test_equally_good_variants_are_not_told_apart_and_a_worse_one_is():
    runs = {Run(BASE, 2, seed): scored(0.30, seed, loss=2.0) for seed in (1, 2, 3)}
    runs |= {Run("equal", 2, seed): scored(0.30, 10 + seed) for seed in (1, 2, 3)}
    runs |= {Run("worse", 2, seed): scored(0.45, 20 + seed, loss=2.1) for seed in (1, 2, 3)}
    table = difference_table(runs, 2)
    seeds, loss, gain, interval, p, by_seed = cells_of(table, "worse")
    assert seeds == "1, 2, 3"
    assert loss == "+0.100 (+0.100 to +0.100)"
    assert float(p) < 0.01
    assert float(gain) < -5
    low, high = map(float, interval.split(" to "))
    assert low < float(gain) < high < 0
    assert sum(map(float, by_seed.split(", "))) / 3 == pytest.approx(float(gain), abs=0.02)
    _, _, _, interval, p, _ = cells_of(table, "equal")
    low, high = map(float, interval.split(" to "))
    assert float(p) > 0.1
    assert low < 0 < high


def test_the_same_translations_do_not_differ():
    runs = {Run(name, 2, 1): scored(0.3, 1) for name in (BASE, "same")}
    assert cells_of(difference_table(runs, 2), "same")[1:5] == [
        "+0.000",
        "+0.00",
        "+0.00 to +0.00",
        "1.000",
    ]


def test_only_seeds_and_ranks_that_both_have_are_compared():
    runs = {
        Run(BASE, 2, 1): scored(0.3, 1),
        Run("bf16", 2, 1): scored(0.3, 2),
        Run("bf16", 2, 2): scored(0.3, 3),
        Run(BASE, 4, 2): scored(0.3, 4),
        Run("alone", 2, 9): scored(0.3, 5),
    }
    table = difference_table(runs, 2)
    assert cells_of(table, "bf16")[0] == "1"
    assert "alone" not in table
    assert difference_table(runs, 4) == "", "no table without a row"
    shown = quality_table(runs, 2)
    assert cells_of(shown, "bf16")[:3] == ["1, 2", "1.50", "2.000 (2.000 to 2.000)"]
    assert cells_of(shown, "alone")[2] == "2.000"


def timed(token_s, chosen=""):
    return Timed({"token_s": token_s, "sent_over_formula": 1.01}, chosen)


def test_time_is_compared_with_exact_sums_on_this_link_and_on_one_ten_times_as_fast():
    rounds = [
        {(BASE, SLOW): timed(0.004), (BASE, FAST): timed(0.001), ("bf16", SLOW): timed(0.002)},
        {(BASE, SLOW): timed(0.006), (BASE, FAST): timed(0.001), ("bf16", SLOW): timed(0.002)},
        {(BASE, SLOW): timed(0.004)},  # was ended early
    ]
    cells = cells_of(time_table(rounds, SLOW), "bf16")
    assert cells[0] == "2.000"
    assert cells[5] == "1.010"
    assert cells[6] == "0.417 (0.333 to 0.500)"
    assert cells[7] == "2.000"
    assert f"time / {BASE} at 1gbit" in time_table(rounds, SLOW)
    assert cells_of(time_table(rounds, FAST), BASE)[6:8] == ["1.000", ""]


def test_the_mode_that_a_run_has_chosen_is_shown():
    rounds = [{("auto", SLOW): timed(0.1, "local")}, {("auto", SLOW): timed(0.1, "bf16")}]
    assert "| auto (local, bf16) |" in time_table(rounds, SLOW)


def test_a_faster_place_has_as_many_nodes():
    assert faster_place(SLOW, [Place(4, "1gbit"), SLOW, FAST]) == FAST
    assert faster_place(SLOW, [Place(2, "1000mbit")]) == Place(2, "1000mbit")
    assert faster_place(FAST, [SLOW, FAST]) is None


def test_the_end_of_a_run_is_read_and_steps_that_were_taken_again_count_once(tmp_path):
    run = RunDir(tmp_path / "run")
    events = run.root / "events"
    events.mkdir(parents=True)
    evaluated = Evaluated(2, 3.25, None, None, None, "", "", True, 4.0)
    attempts = [[step(1, 0.0), step(2, 0.0)], [step(2, 0.0), step(3, 0.0, tokens=50)]]
    for number, steps in enumerate(attempts, start=1):
        lines = [to_line(Stamped(1000.0 + number, 1.0, one.done)) for one in steps]
        (events / f"attempt-00{number}-rank-0000.jsonl").write_text("".join(lines))
    with pytest.raises(CandidateError, match="never evaluated"):
        ending_of(run)
    with (events / "attempt-002-rank-0000.jsonl").open("a") as file:
        file.write(to_line(Stamped(1003.0, 3.0, evaluated)))
    assert ending_of(run) == {"validation_loss": 3.25, "tokens": 250}


def test_updates_are_cut_into_as_large_micro_batches_when_they_are_accumulated():
    lengths = np.random.default_rng(1).integers(5, 30, size=(2000, 2)).astype(np.int32)
    tokens = update_tokens(lengths, 256)
    for times in (1, 4):
        plan = BatchPlan(lengths, times * tokens, 256, seed=1)
        assert plan.micro_batches_per_step == times * MICRO_BATCHES
    assert tokens > 2 * 256
