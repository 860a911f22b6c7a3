"""What is forecast and then run: numbers of nodes, rates, two sizes of models, sync modes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Overrides = Mapping[str, object]

SYNC: Mapping[str, Overrides] = {
    "fp32": {},
    "bf16": {"sync.mode": "bf16"},
    "accumulate": {"sync.mode": "accumulate", "sync.accumulate": 4},
    "local-4-bf16": {"sync.mode": "local", "sync.local_steps": 4, "sync.wire": "bf16"},
    "local-8-bf16": {"sync.mode": "local", "sync.local_steps": 8, "sync.wire": "bf16"},
    "local-8-4bit": {"sync.mode": "local", "sync.local_steps": 8, "sync.wire": "4bit"},
    "diloco": {"sync.mode": "diloco", "sync.local_steps": 12, "sync.wire": "4bit"},
}
MODELS: Mapping[str, Mapping[str, Any]] = {
    # 1.2 million parameters, and 7.1 million, on the built-in phrasebook.
    "tiny": {
        "model": {"preset": "transformer-tiny", "encoder_layers": 3, "decoder_layers": 3},
        "training": {"tokens_per_update": 3600, "micro_batch_tokens": 1024},
    },
    "small": {
        "model": {"preset": "transformer-small"},
        "training": {"tokens_per_update": 3600, "micro_batch_tokens": 1024},
    },
}


class Combination(NamedTuple):
    model: str
    nodes: int
    link: str
    """As `dragoman lab` takes a rate."""
    sync: str

    @property
    def title(self) -> str:
        return f"{self.model}-{self.nodes}-{self.link}-{self.sync}"


COMBINATIONS: Sequence[Combination] = (
    Combination("tiny", 2, "10mbit", "fp32"),
    Combination("tiny", 2, "100mbit", "fp32"),
    Combination("tiny", 2, "none", "fp32"),
    Combination("tiny", 2, "10mbit", "local-8-bf16"),
    Combination("tiny", 2, "10mbit", "local-8-4bit"),
    Combination("tiny", 3, "10mbit", "bf16"),
    Combination("tiny", 3, "100mbit", "fp32"),
    Combination("tiny", 3, "1gbit", "fp32"),
    Combination("tiny", 3, "10mbit", "local-4-bf16"),
    Combination("tiny", 4, "100mbit", "bf16"),
    Combination("tiny", 4, "10mbit", "diloco"),
    Combination("small", 2, "100mbit", "fp32"),
    Combination("small", 2, "1gbit", "fp32"),
    Combination("small", 2, "none", "fp32"),
    Combination("small", 2, "100mbit", "accumulate"),
    Combination("small", 2, "100mbit", "local-8-4bit"),
    Combination("small", 3, "1gbit", "bf16"),
    Combination("small", 3, "100mbit", "local-8-bf16"),
    Combination("small", 4, "1gbit", "fp32"),
    Combination("small", 4, "100mbit", "local-8-4bit"),
    Combination("small", 4, "none", "bf16"),
)


def recipe_of(model: str, folder: str) -> dict[str, Any]:
    """Returns a recipe that evaluates and saves nothing while it is timed."""
    shape = MODELS[model]
    return {
        "name": f"bench-plan-{model}",
        "data": {
            "source_language": "en",
            "target_language": "de",
            "max_length": 64,
            "prepared": f"{folder}/{model}/prepared",
            "train": [{"kind": "phrasebook", "pairs": 20_000}],
            "validation": [{"kind": "phrasebook", "pairs": 16}],
        },
        "tokenizer": {"vocabulary": 2000 if model == "tiny" else 6000},
        "model": dict(shape["model"]),
        "training": {**shape["training"], "steps": 1, "compare_every_steps": 0, "device": "cpu"},
        "schedule": {"kind": "constant", "peak": 0.001, "warmup_steps": 10},
        "evaluation": {
            "every_steps": 1_000_000,
            "train_sample_pairs": 0,
            "translate_sentences": 1,
            "samples": 0,
        },
        "checkpoints": {"every_steps": 1_000_000},
    }
