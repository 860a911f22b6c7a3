"""Models that are worse, or look better, than their losses let one think."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scenarios.learning import below, levelled, power_law, turning
from scenarios.learning_cases import EVERY, FALLING, LEVEL, SLOWING, STEPS, learns
from scenarios.network_cases import TINY, TINY_SIZE
from scenarios.scenario import Quantity, Scenario
from scenarios.truth import Truth
from scenarios.world import Dataset, Floats, Learning, Recorded, World

LEAK = "also in the training set|leak"
# What was trained on cannot tell how well a model does on anything else.
_NOBODY_KNOWS = {
    "trained": ("not known", "too early to say", "not yet"),
    "overfitting": ("not known", "too early to say", "no"),
}
_HIGH = levelled(power_law(2.6, 0.5, 0.9, warmup=400), 2600)
_LEAKED = levelled(power_law(0.05, 0.4, 1.2, warmup=400), 3600)
_STUCK = levelled(power_law(5.6, 0.6, 0.9, warmup=1500), 2200)
_SKIPPED_STEPS = np.arange(1, STEPS + 1)[np.random.default_rng(3).random(STEPS) < 1 / 3].tolist()


def _thirds(steps: Sequence[int]) -> list[int]:
    """Without more than nine in a row: ten would end the attempt."""
    kept: list[int] = []
    for step in steps:
        if kept[-9:] != list(range(step - 9, step)):
            kept.append(step)
    return kept


SKIPPED = _thirds(_SKIPPED_STEPS)


def _gain_in_bleu(per_nat: float) -> Any:
    def gain(truth: Truth) -> float:
        now, then = FALLING(np.array([STEPS, 1.25 * STEPS]))
        return float(per_nat * (now - then))

    return gain


def _bumpy(steps: Floats) -> Floats:
    """Stuck high up, and up and down from one evaluation to the next."""
    return _STUCK(steps) + 0.15 * np.sin(steps / 97.0)


def scored(learning: Learning, score: float, settings: Mapping[str, Any] | None = None) -> World:
    return replace(learns(learning, settings=settings), recorded=Recorded(test_score=score))


QUALITY_CASES = [
    Scenario(
        "level far too high",
        "flat at 2.6 nats and 11 BLEU since step 2,600: it learns no more, and is no good",
        learns(Learning(_HIGH, below(_HIGH, 0.05), floor=2.6, bleu_at_floor=11.0)),
        {"trained": "not yet", "overfitting": "no"},
        says={"trained": ["BLEU"]},
        denies={"trained": ["training.steps="]},  # more of the same brings nothing
        seeds=3,
    ),
    Scenario(
        "level far too high, tested",
        "the same with 10.6 BLEU on the test set",
        scored(Learning(_HIGH, below(_HIGH, 0.05), floor=2.6, bleu_at_floor=11.0), 10.6),
        {"trained": "not yet", "overfitting": "no"},
        says={"trained": ["BLEU"], "quality": []},
    ),
    Scenario(
        "level where it should be",
        "flat at 1.36 nats and 27 BLEU since step 2,600, 27.1 BLEU on the test set",
        scored(Learning(LEVEL, below(LEVEL, 0.05), floor=1.35, bleu_at_floor=27.0), 27.1),
        {"trained": "yes", "overfitting": "no"},
        denies={"quality": ["leak", "also in the training set"]},
        seeds=3,
    ),
    Scenario(
        "a third of the updates skipped",
        "in 2,000 of 6,000 steps the gradients were not finite; the loss falls on regardless",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, skipped=SKIPPED)),
        {"trained": ("not yet", "too early to say")},
        says={"spikes": ["skipped", "32 %|33 %|34 %|third"]},
        may_say=frozenset({"faults"}),
        seeds=3,
    ),
    Scenario(
        "a third of the updates skipped, flat",
        "in a third of the steps the gradients were not finite, and the loss is flat",
        learns(Learning(LEVEL, below(LEVEL, 0.05), skipped=SKIPPED)),
        {"overfitting": "no"},
        says={"spikes": ["skipped", "32 %|33 %|34 %|third"]},
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "half of the updates skipped late",
        "from step 5,000 of 6,000 on, every second update was skipped",
        learns(
            Learning(FALLING, below(FALLING, 0.05), floor=1.0, skipped=range(5000, STEPS + 1, 2))
        ),
        {},
        says={"spikes": ["skipped", "8.3 %|8 %|501|500"]},
        may_say=frozenset({"faults"}),
    ),
    Scenario(
        "test pairs in the training set",
        "leaks were kept; BLEU is 97 on validation and test, and there is no gap between losses",
        scored(
            Learning(_LEAKED, below(_LEAKED, 0.0), floor=0.06, bleu_at_floor=97.0),
            97.0,
            {"cleaning.drop_leaks": False},
        ),
        _NOBODY_KNOWS,
        says={"quality": [LEAK]},
        seeds=3,
    ),
    Scenario(
        "validation pairs in the training set",
        "leaks were kept; BLEU is 95 on validation, and no test set was translated",
        learns(
            Learning(_LEAKED, below(_LEAKED, 0.0), floor=0.06, bleu_at_floor=95.0),
            settings={"cleaning.drop_leaks": False},
        ),
        _NOBODY_KNOWS,
        says={"quality": [LEAK]},
    ),
    Scenario(
        "a made-up language",
        "sentences of a grammar: 94 BLEU is what a model that has learned it gets",
        scored(
            Learning(_LEAKED, below(_LEAKED, 0.03), floor=0.06, bleu_at_floor=94.0),
            94.0,
            {
                "data.train": [{"kind": "phrasebook", "pairs": 40_000, "seed": 1}],
                "data.validation": [{"kind": "phrasebook", "pairs": 500, "seed": 2}],
                "data.test": [{"kind": "phrasebook", "pairs": 1000, "seed": 3}],
            },
        ),
        {},
        denies={"quality": ["leak", "also in the training set"]},
    ),
    Scenario(
        "learning rate ten times too high",
        "scale 20 instead of 2: the loss is stuck at 5.6 nats and jumps about",
        learns(
            Learning(
                _bumpy,
                below(_bumpy, 0.0),
                floor=1.2,
                spikes=dict.fromkeys(range(1600, STEPS, 400), 1.5),
            ),
            settings={"schedule.scale": 20.0, "schedule.warmup_steps": 1500},
        ),
        {"trained": "not yet", "learning-rate": "as set", "overfitting": "no"},
        says={"learning-rate": ["schedule.scale", "too high"]},
        may_say=frozenset({"spikes"}),
        seeds=3,
    ),
    Scenario(
        "peak ten times too high",
        "a cosine with a peak of 1e-2 instead of 1e-3: the loss is stuck at 5.6 nats",
        learns(
            Learning(_bumpy, below(_bumpy, 0.0), floor=1.2),
            settings={
                "schedule.kind": "cosine",
                "schedule.peak": 0.01,
                "schedule.warmup_steps": 1500,
            },
        ),
        {"trained": "not yet", "learning-rate": "as set", "overfitting": "no"},
        says={"learning-rate": ["schedule.peak", "too high"]},
        may_say=frozenset({"spikes"}),
    ),
    Scenario(
        "a high rate that works",
        "a tiny model whose rate peaks at 9e-3 and which learns all it should",
        learns(
            Learning(LEVEL, below(LEVEL, 0.05)),
            settings={**TINY, "schedule.scale": 2.0, "schedule.warmup_steps": 400},
        ),
        {"trained": "yes", "learning-rate": "as set", **TINY_SIZE},
        denies={"learning-rate": ["is too high", "ten times"]},
    ),
    Scenario(
        "noisy BLEU",
        "BLEU goes up and down by 1.2 from one evaluation to the next; the loss falls steadily",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, bleu_wobble=1.2, bleu_error=1.0)),
        {"trained": "not yet"},
        quantities=[Quantity("trained", "expected gain in BLEU", _gain_in_bleu(14.0), holds=1.2)],
        seeds=5,
    ),
    Scenario(
        "very noisy BLEU",
        "two hundred sentences: BLEU goes up and down by 3",
        learns(Learning(FALLING, below(FALLING, 0.05), floor=1.0, bleu_wobble=3.0, bleu_error=2.5)),
        {"trained": "not yet"},
        quantities=[Quantity("trained", "expected gain in BLEU", _gain_in_bleu(14.0), holds=3.0)],
        seeds=3,
    ),
    Scenario(
        "five falling evaluations",
        "each clearly lower than the one before; training.steps = 1,000 ended it",
        learns(
            Learning(FALLING, below(FALLING, 0.05), floor=1.0),
            1000,
            {"training.steps": 1000, "schedule.warmup_steps": 150},
        ),
        {"trained": ("not yet", "too early to say"), "overfitting": ("no", "too early to say")},
        says={"trained": ["training.steps"]},
    ),
    Scenario(
        "best checkpoint pruned",
        "overfitting from step 3,000 on; only the last two checkpoints are kept, none the best",
        learns(
            Learning(turning(SLOWING, 3000, 0.08), below(SLOWING, 0.1, 0.05, 1500)),
            settings={"checkpoints.keep_best": 0, "checkpoints.keep_last": 2},
        ),
        {"overfitting": "yes"},
        denies={
            "overfitting": ["step-00003000", "step-00002", "checkpoints/best", "--checkpoint best"],
            "trained": ["step-00003000", "step-00002", "checkpoints/best", "--checkpoint best"],
        },
        quantities=[
            Quantity("overfitting", "began after step", lambda t: 3000.0, distance=2 * EVERY)
        ],
        seeds=3,
    ),
    Scenario(
        "best checkpoint kept",
        "overfitting from step 3,000 on; the best checkpoint is still there",
        learns(Learning(turning(SLOWING, 3000, 0.08), below(SLOWING, 0.1, 0.05, 1500))),
        {"overfitting": "yes"},
        says={"overfitting": ["best"]},
    ),
    Scenario(
        "small corpus learned by heart",
        "29,000 lines, 190 epochs: validation rises from step 1,200 on, training falls on",
        replace(
            learns(Learning(turning(SLOWING, 1200, 0.15), below(SLOWING, 0.2, 0.12, 600))),
            dataset=Dataset(29_000, 29_000, 1_800_000, 2_100_000, 380_000),
        ),
        {
            "overfitting": "yes",
            "training-set": ("3.9 MB, 29,000 lines", "3.90 MB, 29,000 lines"),
        },
        denies={"trained": ["--set training.steps"], "overfitting": ["--set training.steps"]},
    ),
]
