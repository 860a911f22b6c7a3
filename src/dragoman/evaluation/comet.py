"""COMET, a learned metric, from a model that the user has on disk; nothing is downloaded.

It judges meaning, which BLEU, chrF and TER do not. Its package, unbabel-comet, needs NumPy 1 and
protobuf 4, and so cannot be installed beside Dragoman: it runs as a process of an environment of
its own. `comet_scorer` is the program. Without torch.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.errors import RunError, UserError
from dragoman.evaluation.scoring import MetricScore
from dragoman.evaluation.significance import draws, middle_95

PROGRAM = Path(__file__).with_name("comet_scorer.py")
INSTALL = (
    "make an environment for it with: python3 -m venv comet-env && comet-env/bin/pip install "
    "unbabel-comet 'setuptools<82', and name it with: --comet-python comet-env/bin/python"
)
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class Comet(NamedTuple):
    """A model, and what runs it."""

    model: Path
    """A checkpoint, or a folder that holds one, as COMET's own download makes it."""
    python: Path = Path(sys.executable)
    """The interpreter of the environment that COMET is installed in."""


def check_comet(comet: Comet) -> None:
    """Refuses what could not be scored with, in less than a second, without loading the model."""
    checkpoint_in(comet.model)
    missing = _answer(comet.python, {"rows": []})["missing"]
    if "comet" in missing:
        raise UserError(f"{comet.python}: COMET is not installed there; {INSTALL}")
    if missing:
        raise UserError(
            f"{comet.python}: COMET needs the module {missing[0]} there; install it with: "
            f"{shlex.quote(str(comet.python))} -m pip install 'setuptools<82'"
        )


def comet_score(
    comet: Comet, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> MetricScore:
    """Returns the mean of COMET's sentence scores, with the interval by resampling sentences."""
    check_comet(comet)
    checkpoint = checkpoint_in(comet.model)
    rows = [
        {"src": source, "mt": translation, "ref": reference}
        for source, translation, reference in zip(sources, translations, references, strict=True)
    ]
    answer = _answer(comet.python, {"checkpoint": str(checkpoint), "rows": rows})
    if answer.get("encoder"):
        program = f"import comet; comet.load_from_checkpoint({str(checkpoint)!r})"
        raise UserError(
            f"{checkpoint}: its encoder {answer['encoder']} is not on this machine, and nothing is "
            "downloaded here; where there is a network, fetch its tokenizer once with: "
            f"{shlex.quote(str(comet.python))} -c {shlex.quote(program)}"
        )
    if "refused" in answer:
        raise UserError(
            f"{checkpoint}: COMET cannot load it ({answer['refused']}); download the model again, "
            "or name another"
        )
    if "failed" in answer:
        raise RunError(
            f"{checkpoint}: COMET could not score with it ({answer['failed']}); evaluate without "
            "--comet, or name another model"
        )
    scores = np.asarray(answer["scores"], dtype=np.float64)
    drawn = np.concatenate([times @ scores for times in draws(len(scores))]) / len(scores)
    signature = f"model:{name_of(checkpoint)}|version:{answer['version']}"
    return MetricScore("COMET", float(scores.mean()), *middle_95(drawn), signature)


def checkpoint_in(model: Path) -> Path:
    """Returns the checkpoint of a model that is given by its file or its folder.

    COMET reads what kind of model it is from hparams.yaml in the folder above.
    """
    found = [model] if model.is_file() else sorted(model.glob("**/*.ckpt"))
    if not found:
        raise UserError(
            f"{model}: is no COMET model; name a .ckpt file, or the folder of a model that was "
            "downloaded before"
        )
    if len(found) > 1:
        raise UserError(
            f"{model}: holds {len(found)} COMET models; name one of them, such as {found[-1]}"
        )
    # Links are kept: in the cache of a download they lead away from hparams.yaml.
    checkpoint = found[0].absolute()
    hparams = checkpoint.parents[1] / "hparams.yaml"
    if not hparams.is_file():
        raise UserError(
            f"{hparams}: is missing; COMET needs it beside the folder of {checkpoint.name}, as in "
            "model/hparams.yaml and model/checkpoints/model.ckpt"
        )
    return checkpoint


def name_of(checkpoint: Path) -> str:
    """Returns the public name of a model in the cache of a download, else that of its folder."""
    for part in checkpoint.parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    return checkpoint.parents[1].name


def _answer(python: Path, question: Mapping[str, Any]) -> dict[str, Any]:
    # Lightning, on which COMET is built, takes the variables of Slurm for orders to itself.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    try:
        done = subprocess.run(
            [str(python), str(PROGRAM), str(os.getpid())],
            input=json.dumps(question).encode(),
            capture_output=True,
            env=ours | OFFLINE,
            check=False,
        )
    except OSError as error:
        raise UserError(
            f"{python}: cannot be started ({error.strerror}); name the interpreter of the "
            "environment that COMET is installed in, with --comet-python"
        ) from None
    try:
        # Not its exit code: a package may crash at its end, with all work done.
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RunError(
            f"{python}: the process that runs COMET {_how_it_failed(done)}; try that interpreter "
            "with: -c 'import comet'"
        ) from None
    return answer


def _how_it_failed(done: subprocess.CompletedProcess[bytes]) -> str:
    if done.returncode < 0:
        return f"was ended by {signal.Signals(-done.returncode).name}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"failed with: {lines[-1] if lines else f'exit code {done.returncode}'}"
