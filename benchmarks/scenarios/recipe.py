"""The files of a run beside its events: config, manifest, checkpoints, status, scores."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from dragoman.checkpoints.names import BEST, LATEST, MANIFEST, MODEL, OPTIMIZER, STATE, TOKENIZER
from dragoman.checkpoints.names import folder_of as checkpoint_folder
from dragoman.config import Config, dump_config, parse_config
from dragoman.model.size import count_parameters
from dragoman.rundir import RunDir, write_json
from dragoman.shards.passport import Passport, Side, SourceRecord, SplitRecord
from scenarios.world import Dataset, Machines, World

BASE: Mapping[str, Any] = {
    "name": "scenario",
    "data.source_language": "en",
    "data.target_language": "de",
    "data.train": [{"kind": "text", "source": "train.en", "target": "train.de"}],
    "data.validation": [{"kind": "text", "source": "valid.en", "target": "valid.de"}],
    "data.test": [{"kind": "text", "source": "test.en", "target": "test.de"}],
    "model.preset": "transformer-base",
    "training.precision": "bf16",
    "training.steps": 1000,
    "schedule.warmup_steps": 100,
    "schedule.scale": 0.2,  # for a peak as usual, 9e-4, after so few steps
    "evaluation.every_steps": 250,
    "checkpoints.every_steps": 250,
}
SIGNATURES = {
    "bleu_signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
    "chrf_signature": "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
}
HEADER_BYTES = 24_000
"""Of a safetensors file with the names of some hundred tensors."""
STATE_BYTES, TOKENIZER_BYTES, MANIFEST_BYTES = 611, 797_000, 574


def config_of(world: World) -> Config:
    tree: dict[str, Any] = {}
    given = {**BASE, **world.settings}
    for key, value in given.items():
        if value is None:
            continue
        *sections, last = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return parse_config(tomli_w.dumps(tree), origin="scenario")


def parameters_of(config: Config) -> int:
    return count_parameters(config.model, config.tokenizer.vocabulary)


def checkpoint_files(config: Config) -> dict[str, int]:
    """Name -> bytes."""
    weights = 4 * parameters_of(config)
    return {
        MANIFEST: MANIFEST_BYTES,
        MODEL: weights + HEADER_BYTES,
        OPTIMIZER: 2 * weights + 2 * HEADER_BYTES,
        STATE: STATE_BYTES,
        TOKENIZER: TOKENIZER_BYTES,
    }


def write_config(run: RunDir, config: Config) -> None:
    run.root.mkdir(parents=True)
    run.config.write_text(dump_config(config), encoding="utf-8")


def write_manifest(run: RunDir, world: World, config: Config) -> None:
    passport = _passport(world.dataset, config)
    versions = {"dragoman": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}
    write_json(
        run.manifest,
        {
            "data_sha256": passport.content_hash,
            "tokenizer_sha256": passport.tokenizer_sha256,
            "data": passport.model_dump(mode="json"),
            "attempts": [
                {
                    "attempt": number,
                    "command": ["dragoman", "train", "scenario.toml"],
                    "members": _members(life.machines or world.machines),
                    "versions": versions,
                    **(vars(world.started) if world.started else {}),
                }
                for number, life in enumerate(world.lives, start=1)
            ],
        },
    )


def _members(machines: Machines) -> list[dict[str, str]]:
    return [
        {"host": machines.hosts[machines.host_of(rank)], "device": device_of(machines, rank)}
        for rank in range(machines.ranks)
    ]


def device_of(machines: Machines, rank: int) -> str:
    return "cpu" if machines.device == "cpu" else f"cuda:{rank % machines.ranks_per_host}"


def write_checkpoints(run: RunDir, config: Config, steps: list[int], best: int | None) -> None:
    """As pruning leaves them, in files of the right size that take no room."""
    kept = set(steps[-config.checkpoints.keep_last :])
    if best in steps and config.checkpoints.keep_best:
        kept.add(best)
    for step in sorted(kept):
        folder = run.checkpoints / checkpoint_folder(step)
        folder.mkdir(parents=True)
        for name, size in checkpoint_files(config).items():
            _sparse(folder / name, size)
    if steps:
        (run.checkpoints / LATEST).symlink_to(checkpoint_folder(steps[-1]))
    if best in kept:
        (run.checkpoints / BEST).symlink_to(checkpoint_folder(best))


def write_test_score(run: RunDir, step: int, bleu: float) -> None:
    write_json(
        run.evaluation("test"),
        {
            "split": "test",
            "steps": [step],
            "sentences": 3003,
            "beam": 4,
            "length_penalty": 0.6,
            "bleu": bleu,
            "chrf": bleu + 30.0,
            **SIGNATURES,
            "samples": [],
        },
    )


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _passport(dataset: Dataset, config: Config) -> Passport:
    return Passport(
        key=_hash("key"),
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        vocabulary=config.tokenizer.vocabulary,
        used_pieces=config.tokenizer.vocabulary - 12,
        tokenizer_file="tokenizer.model",
        tokenizer_sha256=_hash("tokenizer"),
        inputs=[],
        splits={
            "train": _split(dataset),
            "validation": _split(Dataset(3000, 3000, 370_000, 420_000, 92_000)),
        },
        command=["dragoman", "prepare", "scenario.toml"],
        versions={"dragoman": "0.1.0"},
    )


def _split(dataset: Dataset) -> SplitRecord:
    dropped = {"duplicate": dataset.lines_in - dataset.lines}
    return SplitRecord(
        pairs_in=dataset.lines_in,
        pairs_kept=dataset.lines,
        pairs_per_epoch=dataset.lines,
        dropped=dropped,
        sources=[
            SourceRecord(
                description="train.en, train.de",
                weight=1.0,
                pairs_in=dataset.lines_in,
                pairs_kept=dataset.lines,
                dropped=dropped,
            )
        ],
        source=_side(dataset.source_bytes, dataset.tokens),
        target=_side(dataset.target_bytes, dataset.tokens),
        shards=[],
    )


def _side(size: int, tokens: int) -> Side:
    return Side(file="", bytes=size, tokens=tokens, unknown_tokens=17, lengths=[10, 20, 30])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
