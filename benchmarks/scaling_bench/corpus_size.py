"""The same steps on 30 thousand, 300 thousand and 4.5 million pairs: what grows with the corpus?"""

from functools import partial

from scaling_bench.bench import TINY_MODEL, WARM_UP_STEPS, Bench, steps_by_rank
from scaling_bench.corpora import drawn_pairs
from scaling_bench.figures import step_figures, usage_figures
from scaling_bench.tables import Column, Round, Section

SEED = 1
STEPS_FACTOR = 10
"""Steps of the tiny model are short."""
LOADED_STEPS = 100
SETTINGS = {
    **TINY_MODEL,
    "training.tokens_per_update": 2000,
    "training.micro_batch_tokens": 2048,
    # As by default, since choosing a sample of the training pairs is part of the start.
    "evaluation.train_sample_pairs": 1000,
}


def measure(pairs: int, bench: Bench) -> Round:
    recipe = bench.larger_recipe
    shards = bench.prepared(recipe).shards("train")
    data = bench.corpus(recipe, f"{pairs}-pairs", lambda: drawn_pairs(shards, pairs, SEED))
    steps = WARM_UP_STEPS + STEPS_FACTOR * bench.steps
    overrides = {**SETTINGS, **data, "training.steps": steps}
    watched, run = bench.train(recipe, overrides, workers=1, threads=1)
    ranks = steps_by_rank(run)
    figures = step_figures(ranks, WARM_UP_STEPS)
    figures |= usage_figures(ranks[0], watched.usage, watched.started_at, WARM_UP_STEPS)
    return {named(pairs): figures | bench.load(recipe, overrides, LOADED_STEPS)}


def named(pairs: int) -> str:
    return f"{pairs:,} pairs"


def section(sizes: list[int]) -> Section:
    smallest, *larger = map(named, sorted(sizes))
    return Section(
        "Size of the corpus",
        (
            Column("tokens_per_s", "target tokens/s", ",.0f"),
            Column("data_s", "waiting for data, ms a step", ".2f", 1e3),
            Column("first_step_s", "first step done after, s", ".1f"),
            Column("verify_s", "verifying, s", ".2f"),
            Column("plan_s", "opening and planning, s", ".2f"),
            Column("first_batch_s", "ordering an epoch, s", ".3f"),
            Column("batch_s", "batch from the plan, ms", ".3f", 1e3),
            Column("load_cpu_s", "CPU of the loader, ms a step", ".2f", 1e3),
            Column("plan_bytes", "peak while planning, MiB above", ",.0f", 2**-20),
            Column("resident_bytes", "resident memory, MiB", ",.0f", 2**-20),
            Column("own_bytes", "of it not backed by files, MiB", ",.0f", 2**-20),
            Column("summed_peak_bytes", "peak memory, MiB", ",.0f", 2**-20),
        ),
        [(size, smallest) for size in larger],
        [partial(measure, pairs) for pairs in sorted(sizes)],
    )
