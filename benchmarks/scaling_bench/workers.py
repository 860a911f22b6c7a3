"""One worker with two threads against two workers with one thread each, for the same updates."""

from functools import partial

from scaling_bench.bench import SMALL_STEPS, WARM_UP_STEPS, Bench, steps_by_rank
from scaling_bench.figures import step_figures, usage_figures
from scaling_bench.tables import Column, Round, Section

PLACES = {"1 worker, 2 threads": (1, 2), "2 workers, 1 thread each": (2, 1)}
MODELS = {"7.6 million": "larger_recipe", "recipes/multi30k.toml": "shipped_recipe"}
FACTORS = {"larger_recipe": 1, "shipped_recipe": SMALL_STEPS}


def measure(model: str, place: str, bench: Bench) -> Round:
    workers, threads = PLACES[place]
    recipe = getattr(bench, MODELS[model])
    steps = WARM_UP_STEPS + FACTORS[MODELS[model]] * bench.steps
    watched, run = bench.train(recipe, {"training.steps": steps}, workers, threads)
    ranks = steps_by_rank(run)
    figures = step_figures(ranks, WARM_UP_STEPS)
    figures |= usage_figures(ranks[0], watched.usage, watched.started_at, WARM_UP_STEPS)
    figures["workers_peak_bytes"] = sum(
        of_rank[-1].done.memory_peak_bytes or 0.0 for of_rank in ranks.values()
    )
    return {f"{model}, {place}": figures}


SECTION = Section(
    "Workers against threads",
    (
        Column("tokens_per_s", "target tokens/s", ",.0f"),
        Column("step_s", "step, s", ".2f"),
        Column("exposed_s", "exposed communication, ms", ".0f", 1e3),
        Column("cpu_s_per_token", "CPU, ms a token", ".2f", 1e3),
        Column("workers_peak_bytes", "workers' peak memory added up, MiB", ",.0f", 2**-20),
        Column("summed_peak_bytes", "all processes at most, MiB", ",.0f", 2**-20),
        Column("tokens_per_step", "target tokens a step", ",.0f"),
    ),
    [(f"{model}, 2 workers, 1 thread each", f"{model}, 1 worker, 2 threads") for model in MODELS],
    [partial(measure, model, place) for model in MODELS for place in PLACES],
)
