"""Translates held-out sentences with a checkpoint and scores them, as a program beside training:
`python -m dragoman.evaluation.checkpoint_scorer PARENT THREADS`.

It takes only time that nobody else wants, is the first to go where memory runs out, and ends with
its parent: the kernel sends it SIGKILL. What it imports at the top needs no torch, so that all of
this holds before anything takes long.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.distributed.parent import end_with_parent
from dragoman.evaluation.beside import ScoreAnswer, ScoreRequest
from dragoman.evaluation.scores import samples_of
from dragoman.evaluation.scoring import score
from dragoman.evaluation.translations import Translations
from dragoman.rundir import RunDir

if TYPE_CHECKING:
    from dragoman.decoding.engine import Engine
    from dragoman.decoding.trained import Chosen

NICENESS = 19
FIRST_TO_GO = "1000"
"""The most that Linux adds to the badness of a process when memory runs out."""
SCRATCH = ".unfinished-evaluation"
"""In the run's folder of converted models, while one is loaded. A kill may leave it, and the next
evaluation removes it."""


def score_checkpoint(
    request: ScoreRequest, open_engine: "Callable[[RunDir, Chosen], Engine]"
) -> ScoreAnswer:
    """Returns the scores of a checkpoint, whose translations then stand in the run.

    Raises a DragomanError where the checkpoint cannot be used.
    """
    from dragoman.decoding.trained import choose  # noqa: PLC0415 - imports torch
    from dragoman.decoding.translate import translate  # noqa: PLC0415

    begun = time.perf_counter()
    run = RunDir(request.run)
    chosen = choose(run, str(request.step), averaged=1)
    engine = open_engine(run, chosen)
    translations = translate(
        engine, chosen.tokenizer, request.sources, request.decoding, longest=request.longest
    )
    scores = score(translations, request.references, request.target_language)
    compared = Translations(run, request.target_language).keep(
        request.step, request.best_step, translations, request.references
    )
    return ScoreAnswer(
        scores=scores,
        compared=compared,
        samples=samples_of(request.sources, translations, request.references, request.samples),
        seconds=time.perf_counter() - begun,
    )


def open_ctranslate2(run: RunDir, chosen: "Chosen") -> "Engine":
    """Opens CTranslate2 in float32 on this host's cores.

    Not with `converted`, which keeps models for later and would let older ones go.
    """
    import torch  # noqa: PLC0415

    from dragoman.decoding.ctranslate2_engine import CTranslate2Engine  # noqa: PLC0415
    from dragoman.decoding.ctranslate2_model import write_model  # noqa: PLC0415
    from dragoman.decoding.trained import load_model  # noqa: PLC0415

    device = torch.device("cpu")
    scratch = run.converted / SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        weights = load_model(chosen, device).state_dict()
        write_model(scratch, chosen.model, weights, chosen.tokenizer)
        return CTranslate2Engine(scratch, chosen.tokenizer, "float32", device)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def give_way() -> None:
    """Takes only idle time from here on, and goes first where memory runs out."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)


def main() -> None:
    begun = time.perf_counter()
    parent, threads = map(int, sys.argv[1:3])
    end_with_parent(parent, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # these are for the trainer
        signal.signal(number, signal.SIG_IGN)
    give_way()
    request = ScoreRequest.model_validate_json(sys.stdin.buffer.read())
    # What a library prints must not get into the answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        import torch  # noqa: PLC0415

        torch.set_num_threads(threads)
        answer = score_checkpoint(request, open_ctranslate2)
        seconds = time.perf_counter() - begun
        output.write(answer.model_copy(update={"seconds": seconds}).model_dump_json().encode())


if __name__ == "__main__":
    main()
