"""Trains with Marian for some steps: python run_marian.py JOB. Runs in pymarian's environment.

Marian is a C++ program without hooks. Its log has a line an update with the target labels so far,
which are not padded and include end pieces; the moment at which the line arrives is the step's end.
Its threads compute an update each at the same time and end together, so as many updates as there
are threads count as one step: from one such end to the next nothing is counted by half.
"""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from step_log import StepLog, read_job

LABELS = re.compile(r"Up\. (?P<update>[\d,]+) : .* after (?P<labels>[\d,]+) : ")


def main() -> None:
    job = read_job()
    write_vocabulary(job)
    log = StepLog(job)
    process = subprocess.Popen(
        [sys.executable, "-m", "pymarian", "train", *options(job)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    before = updates = 0
    try:
        for line in process.stdout:
            labels = labels_so_far(line)
            if labels is None:
                print(line, end="", flush=True)
                continue
            updates += 1
            if updates % job.threads == 0:
                log.step_ends(labels - before, before_end=process.kill)
                before = labels
    finally:
        process.kill()
    sys.exit(process.wait() or 1)


def labels_so_far(line: str) -> int | None:
    """Returns the target labels of all updates up to this line of the log; None: another line."""
    found = LABELS.search(line)
    return int(found["labels"].replace(",", "")) if found else None


def write_vocabulary(job: SimpleNamespace) -> None:
    """Writes the pieces as Marian reads them, with its own two special ones in front."""
    pieces = Path(job.text, "pieces.txt").read_text(encoding="utf-8").splitlines()
    quoted = [piece.replace("\\", "\\\\").replace('"', '\\"') for piece in pieces]
    lines = [f'"{piece}": {number}' for number, piece in enumerate(["</s>", "<unk>", *quoted])]
    Path(job.scratch, "pieces.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def options(job: SimpleNamespace) -> list[str]:
    vocabulary = f"{job.scratch}/pieces.yml"
    flags = {
        "model": [f"{job.scratch}/marian.npz"],
        "type": ["transformer"],
        "train-sets": [f"{job.text}/train.en", f"{job.text}/train.de"],
        "vocabs": [vocabulary, vocabulary],
        "tempdir": [job.scratch],
        "max-length": ["512"],
        "seed": ["1"],
        "cpu-threads": [str(job.threads)],
        "data-threads": ["1"],
        "mini-batch-words": [str(job.batch_tokens)],
        "mini-batch": ["100000"],
        "maxi-batch": ["1000"],
        "mini-batch-round-up": ["false"],
        "optimizer": ["adam"],
        "learn-rate": ["0.0001"],
        "clip-norm": ["0"],
        "label-smoothing": [str(job.label_smoothing)],
        "cost-type": ["ce-sum"],  # the only one whose log counts labels
        "enc-depth": [str(job.layers)],
        "dec-depth": [str(job.layers)],
        "dim-emb": [str(job.width)],
        "transformer-heads": [str(job.heads)],
        "transformer-dim-ffn": [str(job.filter)],
        "transformer-preprocess": ["n"],
        "transformer-postprocess": ["da"],
        "transformer-postprocess-emb": ["d"],
        "transformer-postprocess-top": ["n"],
        "transformer-ffn-activation": ["relu"],
        "transformer-dropout": [str(job.residual)],
        "transformer-dropout-attention": [str(job.attention)],
        "transformer-dropout-ffn": [str(job.activation)],
        "tied-embeddings-all": [],
        "no-reload": [],
        "disp-freq": ["1"],
        "disp-label-counts": ["true"],
        "save-freq": ["1000000"],
        "after": ["1000000u"],
    }
    return [word for flag, values in flags.items() for word in (f"--{flag}", *values)]


if __name__ == "__main__":
    main()
