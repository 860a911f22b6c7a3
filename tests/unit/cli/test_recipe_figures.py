import pytest

from dragoman.cli import recipe_figures
from dragoman.cli.recipe_figures import Counted
from dragoman.config import load_config
from dragoman.forecast.computing import micro_batches_of
from dragoman.recipes import shipped_recipe

PIECES = 32768


def figures(config, workers, counted=None):
    usual = Counted(PIECES, micro_batches_of(config, 1), is_exact=False)
    return recipe_figures.figures(config, workers, counted or usual)


def test_the_figures_of_the_wmt16_recipe_are_those_of_its_stories():
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de")), workers=4))
    assert told["parameters"] == "60,880,896 with 32,768 pieces"
    assert told["peak learning rate"] == "9.882e-04 at step 8,000 (noam)"
    assert told["gradients on the wire"].startswith("243.5 MB per step")
    assert told["accumulation"].startswith("1 micro-batch per worker")
    assert told["ends"] == "after 300,000 steps, about 7,500.0 million tokens"


def test_fewer_workers_accumulate_more():
    config = load_config(shipped_recipe("wmt16-en-de"))
    assert dict(figures(config, workers=1))["accumulation"].startswith("4 micro-batches before")
    assert dict(figures(config, workers=2))["accumulation"].startswith("2 micro-batches per worker")
    assert dict(figures(config, workers=3))["accumulation"].startswith("up to 2 micro-batches")


def test_what_was_counted_is_told_from_what_is_estimated():
    config = load_config(shipped_recipe("wmt16-en-de"))
    counted = Counted(8000, 8, is_exact=True)
    told = dict(figures(config, 1, counted))
    assert told["parameters"] == "48,199,680 with 8,000 pieces"
    assert told["micro-batches per update"] == (
        "8 of at most 7,000 padded tokens, counted in the prepared data"
    )
    assert told["accumulation"].startswith("8 micro-batches")
    assert "an estimate" in dict(figures(config, 1))["micro-batches per update"]


@pytest.mark.parametrize("mode", ["fp32", "bf16", "local", "auto"])
def test_one_worker_has_no_wire(mode):
    config = load_config(shipped_recipe("wmt16-en-de"), [f"sync.mode={mode}"])
    names = [name for name, _ in figures(config, workers=1)]
    assert not [name for name in names if "wire" in name or "quality" in name]


@pytest.mark.parametrize(
    ("changes", "memory", "checkpoint"),
    [
        ([], "Adam 974,", "730.6 MB"),
        (["optimizer.average_decay=0.999"], "Adam, average 1,218,", "974.1 MB"),
        (
            ["optimizer.kind=schedule-free", "schedule.kind=constant"],
            "Schedule-Free, average 1,218,",
            "974.1 MB",
        ),
        (["optimizer.kind=muon"], "Muon and Adam 798,", "554.4 MB"),
        (["sync.mode=local"], "Adam, outer step 1,644,", "1,339.4 MB"),
    ],
)
def test_what_the_optimizer_keeps_is_counted(changes, memory, checkpoint):
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de"), changes), workers=1))
    assert memory in told["memory per worker"]
    assert told["checkpoint"] == f"{checkpoint}, of which translating needs 243.5"


@pytest.mark.parametrize(
    ("workers", "megabytes"),
    # 974 MB of weights, gradients and Adam; 244 of them gradients that wait for more to be added.
    [(1, "974,"), (2, "731,"), (4, "244,")],
)
def test_sharding_divides_what_a_worker_holds(workers, megabytes):
    config = load_config(shipped_recipe("wmt16-en-de"), ["training.sharding=full"])
    assert f"Adam {megabytes}" in dict(figures(config, workers))["memory per worker"]


def test_two_passes_are_counted():
    once, twice = (
        dict(figures(load_config(shipped_recipe("wmt16-en-de"), [f"training.r_drop={weight}"]), 1))
        for weight in (0.0, 5.0)
    )
    millions = [
        float(told["FLOPs per token pair"].split()[0].replace(",", "")) for told in (once, twice)
    ]
    assert millions[1] == pytest.approx(2 * millions[0], abs=0.1)
    assert "training.r_drop" in twice["FLOPs per token pair"]
    assert twice["micro-batches per update"].startswith("about 8 of at most 3,500")
    assert twice["memory per worker"] == once["memory per worker"]


def test_what_is_found_at_the_start_is_not_made_up():
    config = load_config(shipped_recipe("wmt16-en-de"), ["training.micro_batch_tokens=auto"])
    told = dict(figures(config, workers=1))
    for name in ("memory per worker", "micro-batches per update"):
        assert "training.micro_batch_tokens is found at the start" in told[name]
    assert told["memory per worker"].startswith("974 MB")


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        (["sync.mode=bf16"], "gradients on the wire", "121.8 MB per step in bf16"),
        (
            ["sync.mode=local"],
            "weights on the wire",
            "243.5 MB once in 8 steps in fp32, in 4 fragment(s): 30.4 MB per step",
        ),
        (
            ["sync.mode=diloco", "sync.wire=4bit"],
            "weights on the wire",
            "30.4 MB once in 30 steps in 4bit, in 6 fragment(s): 1.0 MB per step",
        ),
        (
            ["sync.mode=auto"],
            "on the wire",
            "at most 243.5 MB per step; how is found at the start, from the network's speed",
        ),
        (
            ["sync.mode=accumulate", "sync.accumulate=4"],
            "gradients on the wire",
            "243.5 MB per step in fp32",
        ),
    ],
)
def test_what_travels_depends_on_how_workers_synchronize(changes, name, value):
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de"), changes), workers=2))
    assert told[name] == value


@pytest.mark.parametrize("mode", ["bf16", "local", "diloco"])
def test_a_mode_that_costs_quality_says_so(mode):
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de"), [f"sync.mode={mode}"]), 2))
    assert "BLEU" in told["cost in quality"]


def test_exact_sums_cost_nothing():
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de")), workers=2))
    assert "cost in quality" not in told


def test_larger_updates_end_after_the_same_tokens():
    changes = ["sync.mode=accumulate", "sync.accumulate=4"]
    told = dict(figures(load_config(shipped_recipe("wmt16-en-de"), changes), workers=4))
    assert told["ends"] == "after 75,000 steps, about 7,500.0 million tokens"
    assert told["peak learning rate"] == "1.976e-03 at step 2,000 (noam)"
