"""Prepared data of the digits language in several shards, published at an address."""

from pathlib import Path

from digits_language import write_digits, write_recipe

from dragoman.config import Config, load_config
from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData
from dragoman.shards.remote import publish
from dragoman.storage import Store, parse_address

SHARDS = 6
PAIRS = 120
"""Of a shard; a source begins a new one."""


def write_blocks(folder: Path) -> tuple[Path, PreparedData]:
    """Returns a recipe of blocks of one shard each, and its data, which is prepared elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = write_recipe(folder)
    text = recipe.read_text(encoding="utf-8")
    sources = []
    for number in range(SHARDS):
        write_digits(folder, f"train-{number}", PAIRS, seed=10 + number)
        sources.append(
            f'{{ kind = "text", source = "train-{number}.en", target = "train-{number}.de" }}'
        )
    before = 'train = [{ kind = "text", source = "train.en", target = "train.de" }]'
    assert before in text
    text = text.replace(before, f"train = [{', '.join(sources)}]\nblock_pairs = {PAIRS}")
    text = text.replace("every_steps = 10\n", "every_steps = 1000\n", 1)
    recipe.write_text(text, encoding="utf-8")
    return recipe, prepare(load_config(recipe, {"data.prepared": str(folder / "elsewhere")}))


def published(prepared: PreparedData, folder: Path) -> str:
    """Returns the address of a copy in a folder."""
    address = f"file://{folder}"
    publish(prepared, Store(parse_address(address)))
    return address


def streamed(recipe: Path, address: str, **settings: object) -> Config:
    keys = {key.replace("__", "."): value for key, value in settings.items()}
    return load_config(recipe, {"data.prepared_from": address, **keys})
