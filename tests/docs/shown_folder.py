"""A folder that holds what the pages take for granted, only smaller; and a fresh shell in it."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from digits_language import RECIPE, write_digits
from docs.shown_blocks import ROOT, Block, Run
from labs import OWN_MACHINE, skip_without_lab

from dragoman.config import TextSource, dump_config, load_config

ACTIVATE = ". .venv/bin/activate"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RUNS = ("demo", "multi30k", "multi30k-bf16", "other", "first", "second", "wmt16-en-de")
RECIPES = {
    "recipes/demo.toml": "demo",
    "recipes/multi30k.toml": "multi30k",
    "recipes/small-wmt16-en-de.toml": "wmt16-en-de",
    "recipe.toml": "recipe",
}
# What makes a recipe of a page one that a test can train.
SMALL = {
    "tokenizer.vocabulary": 60,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.width": 32,
    "model.heads": 2,
    "model.filter": 64,
    "training.tokens_per_update": 400,
    "training.micro_batch_tokens": 300,
    "training.steps": 20,
    "schedule.warmup_steps": 5,
    "evaluation.every_steps": 10,
    "evaluation.translate_sentences": 10,
    "cleaning.duplicates": "keep",
    "cleaning.drop_leaks": False,
}
# Root needs no sudo, and it may be missing. As sudo does, this one forgets the caller's PATH.
SUDO = f'#!/bin/sh\nexec env PATH={SYSTEM_PATH} "$@"\n'
OWN = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && ip link set lo up"
# Starts a command, waits until it has named its address, and stops it.
UNTIL_IT_SERVES = """
until_it_serves() {
  "$@" > served.txt 2>&1 &
  until grep -q 'http://127' served.txt; do
    kill -0 $! || { cat served.txt >&2; return 1; }
    sleep 0.1
  done
  kill $!
  wait $! || true
}
"""


def write_folder(folder: Path, run: Path) -> Path:
    """Writes recipes of the digits language, its text under all names of it, and finished runs."""
    folder.mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    text = folder / "data" / "multi30k"
    text.mkdir(parents=True)
    for name, pairs in (("train", 400), ("valid", 40), ("test", 40)):
        write_digits(text, name, pairs, seed=len(name))
    for other in ("data/m30k", "path/to/multi30k"):
        shutil.copytree(text, folder / other)
    for path, name in RECIPES.items():
        recipe = RECIPE.format(folder=text).replace('name = "digits"', f'name = "{name}"')
        lines = [line for line in recipe.splitlines() if not line.startswith("prepared =")]
        (folder / path).write_text("\n".join(lines), encoding="utf-8")
    (folder / "dragoman").symlink_to(".")  # a clone in the home folder
    write_digits(folder, "corpus", 2400, seed=1)
    for name in RUNS:
        shutil.copytree(run, folder / "runs" / name, symlinks=True)
    for copy in ("letter.txt", "text.en", "test.en"):
        shutil.copy(text / "test.en", folder / copy)
    shutil.copy(text / "test.de", folder)
    sides = [(text / f"test.{one}").read_text().splitlines() for one in ("en", "de")]
    rows = "".join(
        f"{number}\t{de}\t{en}\n" for number, (en, de) in enumerate(zip(*sides, strict=True))
    )
    (folder / "pairs.tsv").write_text(rows, encoding="utf-8")
    for language in ("en", "de"):
        with gzip.open(folder / f"news.{language}.gz", "wb") as file:
            file.write((text / f"test.{language}").read_bytes())
    return folder


def write_recipe_of_page(folder: Path, page: Path) -> None:
    """Writes mine.toml as the page shows it, made small, and the two files of each text source."""
    shown = re.search(r"^```toml\n(name = \"mine\".*?)^```", page.read_text("utf-8"), re.S | re.M)
    if not shown:
        return
    recipe = folder / "mine.toml"
    recipe.write_text(shown[1], encoding="utf-8")
    small = load_config(recipe, SMALL)
    recipe.write_text(dump_config(small), encoding="utf-8")
    sources = (*small.data.train, *small.data.validation, *small.data.test)
    for seed, source in enumerate(sources):
        if isinstance(source, TextSource):
            text = folder / small.data.folder
            text.mkdir(parents=True, exist_ok=True)
            write_digits(text, "both", 200, seed)
            for name, language in ((source.source, "en"), (source.target, "de")):
                data = (text / f"both.{language}").read_bytes()
                (text / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def script_of(block: Block, run: Run) -> str:
    """Returns a block as a script that ends with the first command that fails."""
    lines = ["set -euo pipefail", UNTIL_IT_SERVES]
    lines += [ACTIVATE] if run.is_activated else []
    lines += [run.before] if run.before else []
    for command in block.commands:
        if command in run.skipped:
            continue
        if command in run.stays:
            lines.append(f"until_it_serves {command}")
        elif command in run.unfit:
            lines.append(f"{command} || test $? = 3")
        else:
            lines.append(command)
    return "\n".join(lines)


def run_in_fresh_shell(
    script: str, folder: Path, on_own_machine: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs a script with nothing on PATH but the system, in an environment that is empty else."""
    programs = folder / "system"
    programs.mkdir(exist_ok=True)
    if not shutil.which("sudo") and os.geteuid() == 0:
        (programs / "sudo").write_text(SUDO)
        (programs / "sudo").chmod(0o755)
    words: Sequence[str] = ["bash", "-c", script]
    if on_own_machine:
        skip_without_lab()
        words = [*OWN_MACHINE, "sh", "-c", f'{OWN} && exec "$@"', "sh", *words]
    return subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env={
            "PATH": f"{programs}:{SYSTEM_PATH}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            # This very source, whatever the environment has installed.
            "PYTHONPATH": str(ROOT / "src"),
            "OMP_NUM_THREADS": "1",
            "ONEDNN_MAX_CPU_ISA": os.environ["ONEDNN_MAX_CPU_ISA"],
        },
        capture_output=True,
        text=True,
        check=False,
    )
