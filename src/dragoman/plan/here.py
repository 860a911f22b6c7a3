"""What a recipe takes on this machine: a few steps are timed, or its speed is guessed.

Both take seconds, so where a step of the recipe takes longer than that, smaller ones stand for it.
Without torch: what times steps are workers, as training starts them.
"""

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil

from dragoman import __version__
from dragoman.batches.plan import BatchPlan
from dragoman.batches.shapes import BatchShape, StepShapes, shapes_of
from dragoman.check.rehearsal import MOST_SHAPES, STEPS, rehearse_here
from dragoman.check.result import CheckResult, Collective, Computing, HostFacts
from dragoman.cluster.probe import cuda_devices
from dragoman.config import Config
from dragoman.cores import allowed_cores
from dragoman.corpus.sources import SPLITS, local_files
from dragoman.distributed.launchers import host_name
from dragoman.errors import DragomanError
from dragoman.forecast.computing import operations_of, passes_of
from dragoman.forecast.quantity import assumed
from dragoman.model.size import size_of
from dragoman.plan.assumption import Assumption
from dragoman.plan.content import Plan
from dragoman.plan.data import Data, data_of, given_pieces, unprepared
from dragoman.plan.from_assumption import CPU_UTILIZATION, setup_from_assumption
from dragoman.plan.from_check import setup_from_check
from dragoman.plan.plan import make_plan
from dragoman.plan.setup import Setup
from dragoman.shards.passport import PASSPORT_NAME
from dragoman.training.batch_plan import usual_plan

BOX_S = 1.5
"""About how long the timed steps may take; importing torch and building a model come on top."""
START_S = 25.0
"""How long that may take at most."""
LONGEST_PASS_S = 0.6
"""Of a micro-batch: beyond, smaller ones are timed. It is computed some five times."""
FEWEST_POSITIONS = 128
"""Of a smaller micro-batch, both sides together: of fewer, overhead would be most of the time."""
MOST_TIMED_PARAMETERS = 150_000_000
"""To make the weights of more takes longer than a few seconds."""
MOST_USUAL_TOKENS = 4_000_000
"""Of an update, for which sentences of usual length are made up."""
SMALLER_WIDTH = 0.35
"""Of times that smaller micro-batches stand for."""
GUESS_WIDTH = 1.0
"""Of a guess: small models reach a lesser share of a processor's speed, other programs compute."""
PRODUCT_WIDTH = 512
PRODUCT_S = 0.03
FEWEST_PRODUCTS = 40
"""With five busy processes a core, the quickest of 40 came to 257 to 262 GFLOP/s in seven of eight
trials, and the mean of 30 ms, which may be two products, to 7 to 62 (2026-11)."""


@dataclass(frozen=True)
class Outlook:
    """What a recipe takes on this machine."""

    data: Data
    """With the pieces that training would have."""
    plan: Plan | None
    """None: nothing is known of this machine's speed."""
    known_from: str
    """What was timed or guessed, in words."""
    note: str
    """Why it was not timed, though it should have been; empty: there is nothing to say."""
    workers: int
    """As many as were asked for, or as this machine has devices or cores for."""
    device: str
    """What they compute on, in words."""
    load: float = 0.0
    """Processes that wanted to compute on each core in the minute before."""


def outlook_of(
    config: Config,
    workers: int,
    is_timed: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Outlook:
    """Times or guesses; `tell` gets a few words about what is being done.

    Of more workers than this machine has devices or cores, only as many are looked at: training
    refuses the others.
    """
    data, load = data_here(config, workers), os.getloadavg()[0] / (os.cpu_count() or 1)
    batches = data.batches or _usual(config)
    is_cuda = config.training.device != "cpu" and cuda_devices() > 0
    devices = cuda_devices() if is_cuda else allowed_cores()
    workers = min(workers, devices)
    device = _device_text(workers, devices, is_cuda)
    note = ""
    if is_timed and (too_large := _too_large(config, data.vocabulary, batches)):
        is_timed, note = False, too_large
    if is_timed and batches:
        tell(f"timing a few steps of {config.name} on this machine; --no-timing leaves that out")
        try:
            setup, known_from = _timed(config, workers, data, batches, is_cuda)
            return Outlook(
                data, make_plan(config, setup, data), known_from, note, workers, device, load
            )
        except DragomanError as error:
            # What it advises is about hosts.
            note = f"Steps could not be timed: {str(error).partition(';')[0]}"
    if is_cuda:
        known_from = "the speed of a CUDA device is not known before it is timed"
        return Outlook(data, None, known_from, note, workers, device)
    setup, known_from = _guessed(config, workers, data)
    return Outlook(data, make_plan(config, setup, data), known_from, note, workers, device, load)


def data_here(config: Config, workers: int) -> Data:
    """Returns what the prepared data is like, if it is that of this recipe; else what is usual.

    Refuses a `tokenizer.model` that is needed and not there.
    """
    if not (config.prepared_folder / PASSPORT_NAME).exists():
        return unprepared(config, given_pieces(config) or config.tokenizer.vocabulary)
    data = data_of(config, workers)
    model = config.tokenizer.model
    if config.data.prepared_from or (model in data.files and not Path(model).exists()):
        return data  # training needs nothing else
    pieces = given_pieces(config) or config.tokenizer.vocabulary
    is_other = any(
        str(path) not in data.files and not path.exists()
        for path in local_files(config.data, *SPLITS)
    )
    return unprepared(config, pieces) if is_other or data.vocabulary != pieces else data


def smaller_shape(shapes: Sequence[StepShapes], positions: int) -> BatchShape:
    """Returns a micro-batch with about so many padded positions, of pairs as long as theirs."""
    every = [shape for step in shapes for shape in step]
    pairs = sum(shape.pairs for shape in every)
    source = max(1, round(sum(shape.pairs * shape.longest_source for shape in every) / pairs))
    target = max(1, round(sum(shape.pairs * shape.longest_target for shape in every) / pairs))
    count = max(1, round(positions / (source + target)))
    return BatchShape(count, source, target, count * source, count * target)


def scaled(timed: Computing, factor: float, micro_batches: int) -> Computing:
    """Returns the step whose passes take `factor` times as long; the update stays what it is."""
    passes_s = timed.forward_s + timed.backward_s
    more_s = (factor - 1.0) * passes_s
    return timed.model_copy(
        update={
            "step_s": tuple(seconds + more_s for seconds in timed.step_s),
            "forward_s": factor * timed.forward_s,
            "backward_s": factor * timed.backward_s,
            "last_backward_s": factor * timed.backward_s / micro_batches,
            "micro_batches": micro_batches,
        }
    )


def product_flops_per_s(width: int = PRODUCT_WIDTH, seconds: float = PRODUCT_S) -> float:
    """Returns the operations a second of a product of matrices on all cores, in fp32.

    It is that of the quickest of some, since other programs interrupt them.
    """
    factor = np.ones((width, width), np.float32)
    product = factor @ factor  # threads are started here
    took_s: list[float] = []
    while len(took_s) < FEWEST_PRODUCTS or sum(took_s) < seconds:
        begun = time.perf_counter()
        np.matmul(factor, factor, out=product)
        took_s.append(time.perf_counter() - begun)
    return 2.0 * width**3 / min(took_s)


def _usual(config: Config) -> BatchPlan | None:
    """Returns batches of usual sentences; None: making them up would take long."""
    return usual_plan(config) if config.training.tokens_per_update <= MOST_USUAL_TOKENS else None


def _too_large(config: Config, vocabulary: int, batches: BatchPlan | None) -> str:
    parameters = size_of(config.model, vocabulary).parameters
    too_large = "is too large to be timed in a few seconds"
    if parameters > MOST_TIMED_PARAMETERS:
        return f"A model of {parameters:,} parameters {too_large}"
    if not batches:
        tokens = config.training.tokens_per_update
        return f"training.tokens_per_update = {tokens} {too_large} before the data is prepared"
    return ""


def _timed(
    config: Config, workers: int, data: Data, batches: BatchPlan, is_cuda: bool
) -> tuple[Setup, str]:
    tokenizer = config.tokenizer.model_copy(update={"vocabulary": data.vocabulary})
    whole = shapes_of(batches, max(1, min(STEPS, MOST_SHAPES // data.micro_batches)))
    passes = passes_of(data.micro_batches, workers)
    operations = operations_of(config, data.vocabulary, data.lengths)
    reached = CPU_UTILIZATION * product_flops_per_s() / workers
    pass_s = (operations.forward + operations.backward) / data.micro_batches / reached
    is_smaller = not is_cuda and (pass_s > LONGEST_PASS_S or data.micro_batches > MOST_SHAPES)
    # More workers than micro-batches are refused by training; here each has one.
    factor, shapes = 1.0, [[*step, *step[:1] * max(0, workers - len(step))] for step in whole]
    if is_smaller:
        of_step = sum(map(_positions, whole)) / len(whole)
        of_pass = of_step / data.micro_batches
        wanted = max(FEWEST_POSITIONS, int(of_pass * min(1.0, LONGEST_PASS_S / pass_s)))
        shape = smaller_shape(whole, wanted)
        shapes = [[shape] * workers] * STEPS
        factor = of_pass * passes / _positions([shape])
    collective, computing = rehearse_here(
        config.model_copy(update={"tokenizer": tokenizer}),
        workers,
        lambda: False,
        BOX_S,
        shapes=shapes,
        start_s=START_S,
    )
    steps = len(computing[0].step_s)
    if is_smaller:
        computing = tuple(scaled(each, factor, passes) for each in computing)
        # Whole steps were those of smaller micro-batches, too.
        collective = collective and collective.model_copy(
            update={"whole_step_s": (), "whole_step_mode": ""}
        )
    setup = setup_from_check(config, _result(config, workers, is_cuda, collective, computing), data)
    if not is_smaller:
        return setup, f"{steps} timed step{'' if steps == 1 else 's'}"
    known = setup.computing.factor
    wider = known._replace(
        low=min(known.low, known.value / (1 + SMALLER_WIDTH)),
        high=max(known.high, known.value * (1 + SMALLER_WIDTH)),
    )
    setup = replace(setup, computing=replace(setup.computing, factor=wider))
    part = f"1/{factor:,.0f}" if factor >= 2 else "a part"
    return setup, f"{steps} timed step{'' if steps == 1 else 's'} of {part} of a step's size"


def _positions(shapes: StepShapes) -> int:
    return sum(shape.pairs * (shape.longest_source + shape.longest_target) for shape in shapes)


def _result(
    config: Config,
    workers: int,
    is_cuda: bool,
    collective: Collective | None,
    computing: tuple[Computing, ...],
) -> CheckResult:
    """Returns a check that has looked at this machine's computing alone."""
    host = HostFacts(
        name=host_name(),
        address="127.0.0.1",
        interface="lo",
        link_bytes_per_s=None,
        python=platform.python_version(),
        torch="",
        dragoman=__version__,
        driver="" if is_cuda else None,
        cores=allowed_cores(),
        workers=workers,
        device="GPU" if is_cuda else "CPU",
        device_memory_bytes=psutil.virtual_memory().total // workers,
        gemm_flops_per_s=None,
        free_disk_bytes=0,
        disk_bytes_per_s=None,
        clock_offset_s=0.0,
    )
    return CheckResult(
        dragoman=__version__,
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=0.0,
        recipe=config.name,
        workload_hash=None,
        parameters=None,
        hosts=(host,),
        collective=collective,
        computing=computing,
    )


def _guessed(config: Config, workers: int, data: Data) -> tuple[Setup, str]:
    speed = product_flops_per_s()
    given = Assumption(text="", nodes=1, workers=workers, flops_per_s=speed / workers, is_cpu=True)
    setup = setup_from_assumption(config, given, data)
    basis = (
        f"a guess: products of matrices run at {speed / 1e9:,.0f} GFLOP/s here, of which training "
        f"often reaches {CPU_UTILIZATION:.0%}".replace("%", " %")
    )
    factor = assumed(1.0, GUESS_WIDTH, basis)
    return replace(setup, computing=replace(setup.computing, factor=factor)), basis


def _device_text(workers: int, devices: int, is_cuda: bool) -> str:
    of_workers = f"{workers} worker{'' if workers == 1 else 's'}"
    kind = "CUDA device" if is_cuda else "processor core"
    used = workers if is_cuda else devices  # of a processor, workers share all cores
    return f"{of_workers} on {used} {kind}{'' if used == 1 else 's'}"
