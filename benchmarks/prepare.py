"""Preparation beside the raw SentencePiece encoder, on the same text, in one run, interleaved.

    python benchmarks/prepare.py [--pairs N] [--repeats N] [--sizes N,N,N] [--own-words]

Text: phrasebook sentences, three a line, which have few words; with `--own-words` a line ends with
one that no other line has, as real text is full of names and numbers. The tokenizer is learned once
and given to both, so that neither side's time has learning in it, and the speed of learning is not
measured here. The other side is what a user would write: SentencePiece's own encoder with all
threads and NumPy files, without cleaning, deduplication or hashes; and, where it is installed, the
command-line encoder spm_encode with a Python writer behind it.

Then what a pair costs in corpora of growing `--sizes`, which nobody has to hold in memory: the time
per pair, the largest of all processes, and the most that was on the disk, text included. Sizes that
the disk has no room for are left out. With `--repeats 0` these are all that is measured.
"""

import argparse
import multiprocessing
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from dragoman.config import TokenizerSettings
from dragoman.corpus.phrasebook import sentence_pairs
from dragoman.tokenizer import learn_tokenizer

OURS = "dragoman prepare"
BYTES_PER_PAIR = 800
"""Of raw text, clean text and shards, about."""

RECIPE = """
name = "bench"
[data]
source_language = "en"
target_language = "de"
folder = "{folder}"
prepared = "{folder}/prepared"
train = [{{ kind = "text", source = "train.en", target = "train.de" }}]
validation = [{{ kind = "text", source = "valid.en", target = "valid.de" }}]
[tokenizer]
model = "{folder}/tokenizer.model"
[model]
preset = "transformer-tiny"
[training]
steps = 1
"""

RAW = """
import sys, numpy, sentencepiece
folder, threads = sys.argv[1], int(sys.argv[2])
pieces = sentencepiece.SentencePieceProcessor(model_file=folder + "/tokenizer.model")
for side in ("en", "de"):
    with open(f"{folder}/train.{side}", encoding="utf-8") as file:
        lines = [line.rstrip("\\n") for line in file]
    ids = pieces.encode(lines, out_type=int, add_eos=True, num_threads=threads)
    bounds = numpy.cumsum([0, *map(len, ids)])
    tokens = numpy.concatenate([numpy.asarray(row, dtype=numpy.uint16) for row in ids])
    numpy.save(f"{folder}/raw.{side}.tokens.npy", tokens)
    numpy.save(f"{folder}/raw.{side}.bounds.npy", bounds)
"""

COMMAND_LINE = """
import sys, subprocess, numpy
folder = sys.argv[1]
encoders = {
    side: subprocess.Popen(
        ["spm_encode", f"--model={folder}/tokenizer.model", "--output_format=id",
         "--extra_options=eos", f"--input={folder}/train.{side}"],
        stdout=open(f"{folder}/{side}.ids", "wb"),
    )
    for side in ("en", "de")
}
for side, encoder in encoders.items():
    assert encoder.wait() == 0
    with open(f"{folder}/{side}.ids", encoding="utf-8") as file:
        ids = [numpy.array(line.split(), dtype=numpy.uint16) for line in file]
    numpy.save(f"{folder}/raw.{side}.bounds.npy", numpy.cumsum([0, *map(len, ids)]))
    numpy.save(f"{folder}/raw.{side}.tokens.npy", numpy.concatenate(ids))
"""

# It tokenizes everything to count it; its training does so again, on the fly, in every epoch.
OPENNMT = """
save_data: {folder}/opennmt
src_vocab: {folder}/opennmt.vocab
tgt_vocab: {folder}/opennmt.vocab
share_vocab: true
src_subword_model: {folder}/tokenizer.model
tgt_subword_model: {folder}/tokenizer.model
transforms: [sentencepiece, filtertoolong]
data:
  corpus:
    path_src: {folder}/train.en
    path_tgt: {folder}/train.de
"""
OPENNMT_HELP = "path of onmt_build_vocab, which may be in an environment of its own"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pairs", type=int, default=600_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--alone", action="store_true", help="without the others")
    arguments.add_argument("--sizes", type=sizes_of, default=[], help="pairs: 500000,5000000")
    arguments.add_argument("--own-words", action="store_true", help="one in every line")
    arguments.add_argument("--opennmt", default=shutil.which("onmt_build_vocab"), help=OPENNMT_HELP)
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folders are removed then, too
    if options.repeats:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_text_apart(folder, options.pairs, options.own_words)
            rivals = rivals_in(folder, options.opennmt)
            if options.alone:
                rivals = {OURS: rivals[OURS]}
            compare(folder, rivals, options.pairs, options.repeats)
    if options.sizes:
        print_costs(options.sizes, options.own_words)


def sizes_of(given: str) -> list[int]:
    return [int(size) for size in given.split(",")]


def print_costs(sizes: list[int], has_own_words: bool) -> None:
    """What a pair costs in corpora of these sizes."""
    print(
        "\n| pairs | text, MB | wall, s | wall, CPU per pair, µs | largest process, MB "
        "| most on the disk, bytes per pair |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    for pairs in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if shutil.disk_usage(folder).free < pairs * BYTES_PER_PAIR:
                print(f"| {pairs:,} | left out: needs {pairs * BYTES_PER_PAIR / 1e9:.0f} GB |")
                continue
            write_text_apart(folder, pairs, has_own_words)
            size = sum((folder / f"train.{side}").stat().st_size for side in ("en", "de"))
            with MostUsed(folder) as disk:
                cost = run(rivals_in(folder, None)[OURS])
            print(
                f"| {pairs:,} | {size / 1e6:,.0f} | {cost.wall_s:.1f} "
                f"| {1e6 * cost.wall_s / pairs:.1f}, {1e6 * cost.cpu_s / pairs:.1f} "
                f"| {cost.largest_mb:.0f} | {disk.bytes / pairs:.0f} |",
                flush=True,
            )


def rivals_in(folder: Path, opennmt: str | None) -> dict[str, list[str]]:
    """Name -> command, Dragoman's first."""
    threads = str(os.cpu_count() or 1)
    rivals = {
        OURS: [sys.executable, "-m", "dragoman", "prepare", f"{folder}/recipe.toml"],
        "sentencepiece in Python": [sys.executable, "-c", RAW, str(folder), threads],
    }
    if shutil.which("spm_encode"):
        rivals["spm_encode + writer"] = [sys.executable, "-c", COMMAND_LINE, str(folder)]
    if opennmt:
        (folder / "opennmt.yaml").write_text(OPENNMT.format(folder=folder))
        rivals["OpenNMT-py, onmt_build_vocab"] = [
            *(opennmt, "-config", f"{folder}/opennmt.yaml", "-n_sample", "-1"),
            *("-num_threads", threads, "-overwrite"),
        ]
    return rivals


def compare(folder: Path, rivals: dict[str, list[str]], pairs: int, repeats: int) -> None:
    measured: dict[str, list[Cost]] = {rival: [] for rival in rivals}
    for repeat in range(repeats):
        for rival, command in rivals.items():
            shutil.rmtree(folder / "prepared", ignore_errors=True)
            cost = run(command)
            measured[rival].append(cost)
            print(
                f"{repeat + 1}/{repeats} {rival}: {cost.wall_s:.2f} s, {cost.cpu_s:.2f} s of CPU, "
                f"largest process {cost.largest_mb:.0f} MB",
                flush=True,
            )

    ours_wall, ours_cpu, _ = zip(*measured[OURS], strict=True)
    print(
        f"\n{platform.machine()}, {os.cpu_count()} cores, {pairs:,} pairs of "
        f"{(folder / 'train.en').stat().st_size / 1e6:.0f} + "
        f"{(folder / 'train.de').stat().st_size / 1e6:.0f} MB, {repeats} repeats, medians\n"
    )
    print("| | wall, s | CPU, s | pairs/s | Dragoman's speed against it, wall (CPU) |")
    print("|---|---|---|---|---|")
    for rival, times in measured.items():
        wall, cpu, _ = zip(*times, strict=True)
        wall_ratio = statistics.median(w / o for w, o in zip(wall, ours_wall, strict=True))
        cpu_ratio = statistics.median(c / o for c, o in zip(cpu, ours_cpu, strict=True))
        print(
            f"| {rival} | {statistics.median(wall):.2f} | {statistics.median(cpu):.2f} "
            f"| {pairs / statistics.median(wall):,.0f} | {wall_ratio:.2f} ({cpu_ratio:.2f}) |"
        )


def write_text_apart(folder: Path, pairs: int, has_own_words: bool) -> None:
    """Writes the text in a process of its own: the kernel says of a process that it was at least as
    large as the one that has started it, so this one has to stay small."""
    writer = multiprocessing.get_context("spawn").Process(
        target=write_text, args=(folder, pairs, has_own_words)
    )
    writer.start()
    try:
        writer.join()
    finally:
        writer.kill()
        writer.join()
    if writer.exitcode:
        raise SystemExit(f"the process that writes the text ended with {writer.exitcode}")


def write_text(folder: Path, pairs: int, has_own_words: bool) -> None:
    """Three sentences a line, drawn from a pool, so that any number of lines can be had."""
    pool = list(sentence_pairs("train", 100_000, seed=1))
    chance = random.Random(1)
    with (folder / "train.en").open("w") as english, (folder / "train.de").open("w") as german:
        for number in range(pairs):
            three = chance.choices(pool, k=3)
            end = f" {number:x}\n" if has_own_words else "\n"
            english.write(" ".join(pair[0] for pair in three) + end)
            german.write(" ".join(pair[1] for pair in three) + end)
    (folder / "valid.en").write_text("One.\n")
    (folder / "valid.de").write_text("Eins.\n")
    sample = [text for pair in pool[:20_000] for text in pair]
    tokenizer = learn_tokenizer(sample, TokenizerSettings(vocabulary=3000))
    (folder / "tokenizer.model").write_bytes(tokenizer.model)
    (folder / "recipe.toml").write_text(RECIPE.format(folder=folder))


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float
    largest_mb: float
    """Of all its processes the one with the most memory."""


def run(command: list[str]) -> Cost:
    """What a command takes, its processes included."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - begun
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)  # from kilobytes


class MostUsed(threading.Thread):
    """Measures the most that a folder has on the disk while it is open."""

    EVERY_S = 1.0

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._folder = folder
        self._ended = threading.Event()

    def __enter__(self) -> "MostUsed":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(self.EVERY_S):
            self.bytes = max(self.bytes, self._used())

    def _used(self) -> int:
        used = 0
        for place, _, names in os.walk(self._folder):
            for name in names:
                try:
                    used += 512 * os.lstat(os.path.join(place, name)).st_blocks  # noqa: PTH118
                except FileNotFoundError:  # renamed or removed meanwhile
                    continue
        return used


if __name__ == "__main__":
    main()
