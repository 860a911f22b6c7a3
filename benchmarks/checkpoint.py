"""What a checkpoint costs the training that goes on beside it, and one that training waits for.

    python benchmarks/checkpoint.py [--repeats N] [--tokens N] [--folder FOLDER]

A model of 30 million parameters with Adam's state (365 MB) takes real steps on random pieces. Steps
without a save, beside one in the background, and a save that training waits for take turns, so that
whatever else the machine does falls on all three alike. Nothing is asserted.

The stall is the time that training stands still. On a machine whose cores all compute, the thread
that writes also takes its share of them: that is what makes a step beside a save slower.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dragoman.batches.collate import Batch, collate
from dragoman.checkpoints.background import BackgroundSaver, Place
from dragoman.checkpoints.storage import save_checkpoint
from dragoman.config import ModelSettings
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.training.tensors import optimizer_tensors

VOCABULARY = 16_384
LENGTH = 32
STEPS_IN_A_BLOCK = 2


class Trainer:
    def __init__(self, tokens: int) -> None:
        torch.manual_seed(1)
        shape = {"preset": "transformer-base", "encoder_layers": 3, "decoder_layers": 3}
        self.model = Transformer(ModelSettings.model_validate(shape), VOCABULARY)
        self.objective = Objective(self.model, label_smoothing=0.1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.batch = _batch(tokens)
        self.step = 0

    def take_step(self, saver: BackgroundSaver | None = None) -> float:
        """The seconds that it took."""
        begun = time.perf_counter()
        self.objective(self.batch).smoothed.backward()
        if saver:
            saver.wait_until_copied()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return time.perf_counter() - begun


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--tokens", type=int, default=2048, help="of a step, on each side")
    arguments.add_argument("--folder", help="where to save; default: a temporary folder")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.repeats, options.tokens)


def measure(root: Path, repeats: int, tokens: int) -> None:
    trainer = Trainer(tokens)
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    trainer.take_step()
    rounds = []
    with BackgroundSaver(tokenizer_model=b"") as saver:
        for repeat in range(repeats + 1):
            rounds.append(take_round(trainer, saver, root))
            print(
                f"{repeat}/{repeats}: {rounds[-1]}"
                + (" (memory is taken for the first time)" if repeat == 0 else ""),
                flush=True,
            )
    first, *rounds = rounds
    print(
        f"\n{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__} with "
        f"{torch.get_num_threads()} threads, {parameters / 1e6:.1f} million parameters, "
        f"{12 * parameters / 1e6:.0f} MB, {tokens} tokens a step, {repeats} repeats, medians\n"
    )
    print("| | seconds | share of a step |")
    print("|---|---|---|")
    rows = {
        "step alone": [r.step_s for r in rounds],
        "save that training waits for": [r.waited_s for r in rounds],
        "save in the background: stall": [r.stall_s for r in rounds],
        "save in the background: longer steps beside it": [r.longer_s for r in rounds],
        "save in the background: in flight": [r.in_flight_s for r in rounds],
    }
    for name, seconds in rows.items():
        shares = [s / r.step_s for s, r in zip(seconds, rounds, strict=True)]
        share = 100 * statistics.median(shares)
        print(f"| {name} | {statistics.median(seconds):.4f} | {share:.2f} % |")
    worst = max(100 * r.stall_s / r.step_s for r in (first, *rounds))
    verdict = "under 5 %, as it should be" if worst < 5 else "5 % or more, which is too much"
    print(f"\nstall, the worst of all: {worst:.2f} % of the step that takes it; {verdict}")


@dataclass(frozen=True)
class Round:
    step_s: float
    stall_s: float
    longer_s: float
    """Of all steps that a save was written beside, beyond what they take alone."""
    in_flight_s: float
    waited_s: float

    def __str__(self) -> str:
        return (
            f"step {self.step_s:.3f} s, stall {1000 * self.stall_s:.2f} ms, steps beside longer by "
            f"{self.longer_s:.2f} s, in flight {self.in_flight_s:.2f} s; "
            f"{self.waited_s:.2f} s when waited for"
        )


def take_round(trainer: Trainer, saver: BackgroundSaver, root: Path) -> Round:
    alone = [trainer.take_step() for _ in range(STEPS_IN_A_BLOCK)]
    stall_s, in_flight_s, beside = background_save(trainer, saver, root)
    alone += [trainer.take_step() for _ in range(STEPS_IN_A_BLOCK)]
    waited_s = synchronous_save(trainer, root)
    step_s = statistics.median(alone)
    longer_s = sum(beside) - len(beside) * step_s
    return Round(step_s, stall_s, longer_s, in_flight_s, waited_s)


def background_save(
    trainer: Trainer, saver: BackgroundSaver, root: Path
) -> tuple[float, float, list[float]]:
    """Stall, time in flight, and the steps that a save was written beside."""
    begun = time.perf_counter()
    tensors = trainer.model.state_dict(), optimizer_tensors(trainer.optimizer, trainer.model)
    gathered_s = time.perf_counter() - begun
    saver.begin(trainer.step, *tensors, {}, [Place(root, keep_last=1)])
    beside = []
    while saver.is_busy:
        beside.append(trainer.take_step(saver))
    saver.finish()
    (saved,) = saver.results()
    if saved.error:
        raise saved.error
    return gathered_s + saved.stall_s, saved.in_flight_s, beside


def synchronous_save(trainer: Trainer, root: Path) -> float:
    begun = time.perf_counter()
    tensors = trainer.model.state_dict(), optimizer_tensors(trainer.optimizer, trainer.model)
    save_checkpoint(root, trainer.step, *tensors, {}, b"")
    return time.perf_counter() - begun


def _batch(tokens: int) -> Batch:
    ids = np.random.default_rng(1).integers(4, VOCABULARY, (tokens // LENGTH, 2, LENGTH))
    return collate([(source, target) for source, target in ids], start=2, padding=0)


if __name__ == "__main__":
    main()
