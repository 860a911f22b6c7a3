"""Makes the gallery: real runs on hosts of a lab, each with one known trouble, and their reports.

    sudo .venv/bin/python -m docs_site.gallery [--only WORDS] [--pictures]

Needs Linux and root, as every lab does. Runs and reports are left in runs/gallery, where
`make docs` finds them; with --pictures, a Chromium takes the pictures of docs/gallery as well.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from truth_lab.world import World

Settings: TypeAlias = Mapping[str, float]
ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs" / "gallery"
PICTURES = ROOT / "docs" / "gallery"

RECIPE = """
name = "{name}"
[data]
source_language = "en"
target_language = "de"
max_length = 64
prepared = "{folder}/prepared"
train = [{{ kind = "phrasebook", pairs = {pairs} }}]
validation = [{{ kind = "phrasebook", pairs = 200, seed = 2 }}]
[tokenizer]
vocabulary = 500
[model]
preset = "transformer-tiny"
encoder_layers = 1
decoder_layers = 1
width = 192
heads = 4
filter = 512
dropout = {dropout}
[training]
device = "cpu"
label_smoothing = 0.0
steps = 100
micro_batch_tokens = {micro_batch_tokens}
[schedule]
kind = "constant"
peak = 0.002
warmup_steps = 20
[evaluation]
every_steps = {every_steps}
translate_sentences = 20
train_sample_pairs = 100
samples = 1
[cost]
host_per_hour = 0.53
[telemetry]
tensorboard = false
"""
CORPUS = {"pairs": 4000, "dropout": 0.1, "micro_batch_tokens": 100, "every_steps": 50}
TOO_FEW_PAIRS = {"pairs": 150, "dropout": 0.0, "micro_batch_tokens": 400, "every_steps": 20}


def reports(runs: Path = RUNS) -> list[tuple[str, Path]]:
    """Returns the names and files of the reports that have been made."""
    found = sorted(runs.glob("*/run/report.html"))
    return [(path.parents[1].name, path) for path in found]


def worlds() -> "dict[str, tuple[World, Settings]]":
    """Returns what is wrong with each run, and the settings that its recipe is filled with."""
    from truth_lab.world import Cap, SlowDevice, World  # noqa: PLC0415

    both = ("node1", "node2")
    slow_device = SlowDevice(("node2",), 3.0, from_step=60)
    return {
        "slow-link": (
            World("slow-link", "network", (), steps=150, caps=(Cap(both, "60mbit"),)),
            CORPUS,
        ),
        "straggler": (
            World("straggler", "straggling", (), steps=150, slow_devices=(slow_device,)),
            CORPUS,
        ),
        "overfitting": (
            World("overfitting", "none", (), steps=240, device_s=0.0, tokens_per_update=800),
            TOO_FEW_PAIRS,
        ),
    }


def recipe_of(name: str, settings: Settings, runs: Path = RUNS) -> str:
    return RECIPE.format(name=name, folder=runs / f"{name}-prepared", **settings)


def main() -> None:
    arguments = _arguments()
    sys.path.insert(0, str(ROOT / "benchmarks"))  # where the worlds of known trouble are
    from truth_lab.do_run import do_run  # noqa: PLC0415

    for name, (world, settings) in worlds().items():
        if arguments.only not in name:
            continue
        folder = RUNS / name
        shutil.rmtree(folder, ignore_errors=True)
        recipe = RUNS / f"{name}.toml"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        recipe.write_text(recipe_of(name, settings), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "dragoman", "prepare", recipe], check=True)
        do_run(world, recipe, folder)
        write_report(folder)
        print(folder / "run" / "report.html", flush=True)
    if arguments.pictures:
        for name, path in reports():
            take_picture(path, PICTURES / f"{name}.png")


def write_report(folder: Path) -> None:
    """Has the report written where the run was started, so that its commands have short paths."""
    words = [sys.executable, "-m", "dragoman", "report", "run"]
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def take_picture(report: Path, picture: Path) -> None:
    """Writes what is seen first of a report, as a picture of less than 200 KB."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        # Where this clone lies is nobody's business.
        text = report.read_text(encoding="utf-8").replace(f"{report.parents[1]}/", "")
        page.set_content(text)
        page.locator(".plot .main-svg").first.wait_for()
        page.screenshot(path=picture)
        browser.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--pictures", action="store_true", help="take the pictures of docs/gallery")
    return parser.parse_args()


if __name__ == "__main__":
    main()
