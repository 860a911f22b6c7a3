"""Subword dropout drawn in the loader, against the same kind of pieces drawn beforehand."""

from functools import partial

from dragoman.batches.merges import Merges
from dragoman.batches.subword_dropout import SubwordDropout
from scaling_bench.bench import (
    SMALL_STEPS,
    WARM_UP_STEPS,
    Bench,
    Overrides,
    PairLists,
    steps_by_rank,
)
from scaling_bench.corpora import resegmented_pairs
from scaling_bench.figures import step_figures, usage_figures
from scaling_bench.tables import Column, Round, Section

SHARE = 0.1
SEED = 1
LOADED_STEPS = 240
"""About one epoch of the shipped recipe."""
NONE, BEFORE, DRAWN = "no subword dropout", "pieces drawn beforehand", "pieces drawn in the loader"


def measure(variant: str, bench: Bench) -> Round:
    recipe = bench.shipped_recipe
    steps = WARM_UP_STEPS + SMALL_STEPS * bench.steps
    overrides = {**changes(variant, bench), "training.steps": steps}
    watched, run = bench.train(recipe, overrides, workers=1, threads=2)
    ranks = steps_by_rank(run)
    figures = step_figures(ranks, WARM_UP_STEPS)
    figures |= usage_figures(ranks[0], watched.usage, watched.started_at, WARM_UP_STEPS)
    return {variant: figures | bench.load(recipe, overrides, LOADED_STEPS)}


def changes(variant: str, bench: Bench) -> Overrides:
    if variant == NONE:
        return {}
    if variant == DRAWN:
        return {"training.subword_dropout": SHARE}
    return bench.corpus(bench.shipped_recipe, "resegmented", partial(resegmented, bench))


def resegmented(bench: Bench) -> PairLists:
    prepared = bench.prepared(bench.shipped_recipe)
    merges = Merges(prepared.tokenizer().model, "this benchmark")
    return resegmented_pairs(prepared.shards("train"), SubwordDropout(merges, SHARE, SEED))


SECTION = Section(
    f"Drawing subwords (share {SHARE})",
    (
        Column("tokens_per_s", "target tokens/s", ",.0f"),
        Column("token_s", "step time, µs a target token", ".1f", 1e6),
        Column("data_s", "waiting for data, ms a step", ".2f", 1e3),
        Column("step_s", "step, s", ".2f"),
        Column("cpu_s_per_token", "CPU of the run, µs a token", ".0f", 1e6),
        Column("load_cpu_s_per_token", "CPU of the loader, µs a token", ".2f", 1e6),
        Column("load_cpu_s", "CPU of the loader for a step, ms", ".2f", 1e3),
        Column("tokens_per_step", "target tokens a step", ",.0f"),
    ),
    [(DRAWN, BEFORE), (DRAWN, NONE), (BEFORE, NONE)],
    [partial(measure, variant) for variant in (NONE, BEFORE, DRAWN)],
)
