"""A run with everything that a report can show: hosts, sensors, faults, evaluations, scores."""

import math
from pathlib import Path

from unit.report.fake_run import FakeRun, evaluated, started, step

from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    DeviceFound,
    Event,
    Incident,
    SensorReading,
)

STEP_S = 2.0
HOSTS = 2
EVALUATED_EVERY = 20
# (first step, last step, state, reason): the second went on from the checkpoint of step 60.
LIVES = (
    (1, 80, "", ""),
    (61, 140, "preempted", "SIGTERM"),
    (141, 300, "finished", "training.steps = 300 are done"),
)


def write_invented_run(root: Path) -> FakeRun:
    run = FakeRun(root).with_manifest()
    for attempt, (first, last, state, reason) in enumerate(LIVES, 1):
        for rank in range(HOSTS):
            run.with_events(list(_events(attempt, rank, first, last, state, reason)), attempt, rank)
    return run.with_checkpoint(300, model__safetensors=400, optimizer__safetensors=800)


def _events(attempt: int, rank: int, first: int, last: int, state: str, reason: str):
    yield 0.0, started(attempt, rank, HOSTS, first)
    yield 0.1, DeviceFound("cuda", "An invented GPU", "bf16", 1e14, 16e9)
    at = 1.0
    for number in range(first, last + 1):
        at += STEP_S
        yield at, _step(number, rank)
        yield at, _reading(at, number)
        if rank == 0 and number % EVALUATED_EVERY == 0:
            yield at + 0.5, _evaluated(number)
            yield at + 0.6, CheckpointSaved(number, f"step-{number:08d}", 1200, 0.1)
            at += 0.6
    if rank == 0 and attempt == 2:
        yield at, Incident(last, "other", "a save failed: no space left on device")
    if state:
        yield at + 0.1, AttemptEnded(last, state, reason)


def _step(number: int, rank: int) -> Event:
    communication_s = 0.6 if rank else 0.7
    return step(
        number,
        STEP_S,
        loss=2.0 + 6.0 / math.sqrt(number) + (3.0 if number == 150 else 0.0),
        parts_s={
            "data": 0.01,
            "forward": 0.4,
            "backward": STEP_S - 0.46 - communication_s,
            "communication": communication_s,
            "optimizer": 0.05,
        },
        traffic_bytes={"sent": 3.7e8, "received": 3.7e8, "predicted": 3.65e8},
    )


def _reading(at: float, number: int) -> Event:
    return SensorReading(
        {
            "cpu/percent": 20.0 + number % 7,
            "gpu/0/utilization_percent": 99.0 if number % EVALUATED_EVERY else 40.0,
            "network/eth0/sent_bytes_total": 1.8e8 * at,
            "network/eth0/received_bytes_total": 1.7e8 * at,
        }
    )


def _evaluated(number: int) -> Event:
    bleu = 30.0 - 200.0 / (number + 10)
    return evaluated(
        number,
        bleu,
        validation_loss=1.5 + 4.0 / math.sqrt(number),
        validation_loss_error=0.02,
        train_sample_loss=1.4 + 4.0 / math.sqrt(number),
        train_sample_loss_error=0.02,
        bleu_low=bleu - 1.0,
        bleu_high=bleu + 1.0,
    )
