"""A small language that is learned in seconds: digits in one language, reversed in the other."""

import random
from pathlib import Path

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]

RECIPE = """
name = "digits"

[data]
source_language = "en"
target_language = "de"
folder = "{folder}"
prepared = "{folder}/prepared"
train = [{{ kind = "text", source = "train.en", target = "train.de" }}]
validation = [{{ kind = "text", source = "valid.en", target = "valid.de" }}]
test = [{{ kind = "text", source = "test.en", target = "test.de" }}]

[cleaning]
duplicates = "keep"
drop_leaks = false

[tokenizer]
vocabulary = 60

[model]
preset = "transformer-tiny"
encoder_layers = 1
decoder_layers = 1
width = 32
heads = 2
filter = 64

[training]
tokens_per_update = 400
micro_batch_tokens = 300
steps = 20
device = "cpu"

[schedule]
kind = "inverse-square-root"
peak = 0.005
warmup_steps = 20

[evaluation]
every_steps = 10
train_sample_pairs = 20
translate_sentences = 10
samples = 1

[checkpoints]
every_steps = 5

[telemetry]
tensorboard = false
"""


def write_digits(folder: Path, name: str, pairs: int, seed: int) -> None:
    chance = random.Random(seed)
    numbers = [[chance.randrange(10) for _ in range(chance.randint(2, 8))] for _ in range(pairs)]
    english = "".join(" ".join(ENGLISH[n] for n in line) + "\n" for line in numbers)
    german = "".join(" ".join(GERMAN[n] for n in reversed(line)) + "\n" for line in numbers)
    (folder / f"{name}.en").write_text(english, encoding="utf-8")
    (folder / f"{name}.de").write_text(german, encoding="utf-8")


def write_recipe(folder: Path) -> Path:
    """A recipe of the digits language, its text beside it."""
    write_digits(folder, "train", 800, seed=1)
    write_digits(folder, "valid", 40, seed=2)
    write_digits(folder, "test", 40, seed=3)
    recipe = folder / "digits.toml"
    recipe.write_text(RECIPE.format(folder=folder), encoding="utf-8")
    return recipe
