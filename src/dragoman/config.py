"""Everything a user may set: a TOML recipe comes in, a strict and frozen `Config` goes out.

Each key is documented where it is declared; `dragoman config --keys` prints those texts.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from dragoman.errors import ConfigError
from dragoman.recipes import find_recipe
from dragoman.rundir import read_bounded

Overrides = Sequence[str] | Mapping[str, Any]

MOST_BYTES = 1_000_000
"""Of a recipe or a host list."""
LONGEST_SHOWN = 100
"""Characters of a wrong value that an error message repeats."""


@dataclass(frozen=True)
class Range:
    """The bounds of a number; called by pydantic with each value that is to be checked."""

    low: float
    high: float
    without_low: bool = False

    def __call__(self, value: float) -> float:
        # NaN is inside of nothing, because every comparison with it is false.
        if self.low <= value <= self.high and not (self.without_low and value == self.low):
            return value
        raise PydanticCustomError("range", "{bounds}", {"bounds": str(self)})

    def __str__(self) -> str:
        if self.without_low:
            return f"above {self.low:,} and at most {self.high:,}"
        return f"from {self.low:,} to {self.high:,}"


def between(low: float, high: float) -> AfterValidator:
    return AfterValidator(Range(low, high))


def above(low: float, high: float) -> AfterValidator:
    """`low` itself is excluded."""
    return AfterValidator(Range(low, high, without_low=True))


def _printable(value: str) -> str:
    if value.isprintable():
        return value
    raise PydanticCustomError("text", "text without control characters")


def _written_as(pattern: str, in_words: str) -> AfterValidator:
    """Text that a pattern matches; whoever has to write it is told in words."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise PydanticCustomError("text", "{in_words}", {"in_words": in_words})

    return AfterValidator(check)


# Every number has an upper bound: one that is far above all that makes sense is a slip of the pen,
# and would otherwise end as an overflow, or a loop without end, hours later.
MOST_STEPS = 10**12
MOST_BEAM = 100
LARGEST_INTEGER = 2**63 - 1  # of TOML and of random number generators

Steps = Annotated[int, between(1, MOST_STEPS)]
StepsOrZero = Annotated[int, between(0, MOST_STEPS)]
Amount = Annotated[int, between(1, 10**9)]
AmountOrZero = Annotated[int, between(0, 10**9)]
Seed = Annotated[int, between(0, LARGEST_INTEGER)]
Beam = Annotated[int, between(1, MOST_BEAM)]
Layers = Annotated[int, between(1, 1000)]
LearningRate = Annotated[float, above(0, 100)]
Seconds = Annotated[float, above(0, 86_400)]
Hours = Annotated[float, above(0, 1_000_000)]
Price = Annotated[float, between(0, 1_000_000)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
# Nothing is learned from less than a tenth, and close to 1 nothing is left to scale up.
DropoutShare = Annotated[float, between(0, 0.9)]
Sha256 = Annotated[str, _written_as("[0-9a-f]{64}", "64 hexadecimal digits, letters in lower case")]
RecipeName = Annotated[
    str,
    _written_as(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,199}",
        "1 to 200 letters from a to z or A to Z, digits, dots, hyphens or underscores, beginning "
        "with a letter or a digit",
    ),
]
LanguagePair = Annotated[
    str, _written_as("([A-Za-z_]+-[A-Za-z_]+)?", "two language codes, as en-de, or empty")
]
# As long as a path may be. What is a path or an address cannot hold a line feed or a NUL.
Text = Annotated[str, Field(max_length=4096), AfterValidator(_printable)]

_LOGIN = re.compile(r"://[^/?#\s]*@")


def _without_password(advice: str) -> AfterValidator:
    """The config stands in run directories and reports, which are shown to others."""

    def check(address: str) -> str:
        if _LOGIN.search(address):
            raise ValueError(
                "an address with a user name or password would be shown in the run directory and "
                f"its report; {advice}"
            )
        return address

    return AfterValidator(check)


_MLFLOW_LOGIN = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead"
Address = Annotated[Text, _without_password("fetch the file yourself and name it by its path")]

# More than these are not a sentence any more.
MANY_KEYS = 12
MOST_PROBLEMS = 5

# Shapes only: what regularizes a model depends on the data, so dropout is a key of its own.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "transformer-tiny": {"layers": 4, "width": 128, "heads": 4, "filter": 256},
    "transformer-small": {"layers": 3, "width": 256, "heads": 4, "filter": 1024},
    "transformer-base": {"layers": 6, "width": 512, "heads": 8, "filter": 2048},
    "transformer-big": {"layers": 6, "width": 1024, "heads": 16, "filter": 4096},
}


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


class SourceSettings(Section):
    """What all kinds of sources have."""

    weight: Annotated[float, between(0.0001, 1000)] = 1.0
    """Training sees its pairs this many times an epoch; below 1, a share of them."""
    languages: LanguagePair = ""
    """Its own language pair, as en-de; empty: the data's. The data's pair reversed swaps sides."""


class TextSource(SourceSettings):
    """Two text files, one sentence a line, the same line number for the same sentence.

    Here and below a file is a name in data.folder or an address (https://...); plain, or
    compressed as .gz, .xz, .bz2 or .zst.
    """

    kind: Literal["text"]
    source: Address
    """File of the source language."""
    target: Address
    """File of the target language."""
    sha256: Annotated[tuple[Sha256, ...], Strict(False)] = ()
    """Of source and target file, to be sure of what is read."""

    @field_validator("sha256")
    @classmethod
    def one_hash_a_file(cls, hashes: tuple[str, ...]) -> tuple[str, ...]:
        if len(hashes) not in (0, 2):
            given = "1 hash" if len(hashes) == 1 else f"{len(hashes)} hashes"
            raise ValueError(f"{given} for 2 files; give one each for source and target, or none")
        return hashes


class TsvSource(SourceSettings):
    """A table with a pair a line, columns between tabs."""

    kind: Literal["tsv"]
    file: Address
    """The table."""
    source_column: Annotated[int, between(1, 10_000)] = 1
    """Counts from 1."""
    target_column: Annotated[int, between(1, 10_000)] = 2
    """Counts from 1."""


class JsonlSource(SourceSettings):
    """A JSON object a line."""

    kind: Literal["jsonl"]
    file: Address
    """The objects."""
    source_key: Text
    """Key of the source sentence; dots lead into nested objects: translation.en."""
    target_key: Text
    """Key of the target sentence."""


class TmxSource(SourceSettings):
    """A translation memory."""

    kind: Literal["tmx"]
    file: Address
    """The memory; pairs without both languages are passed over."""


class GettextSource(SourceSettings):
    """Message catalogs of programs (.po, .mo): every Linux machine has them in /usr/share/locale.

    Messages are written in one language, by custom English, and translated into the other.
    """

    kind: Literal["gettext"]
    folder: Text
    """Where to look for catalogs of the target language."""


class MtdataSource(SourceSettings):
    """A public corpus by its name in mtdata, as Statmt-europarl-7-deu-eng."""

    kind: Literal["mtdata"]
    name: Text
    """Fetched into data.cache; all but the corpora of WMT16 need dragoman[mtdata]."""


class SacrebleuSource(SourceSettings):
    """A test set by its name in sacreBLEU, as wmt14/full."""

    kind: Literal["sacrebleu"]
    name: Text
    """Fetched into data.cache."""


class PhrasebookSource(SourceSettings):
    """English-German sentences made by the built-in grammar."""

    kind: Literal["phrasebook"]
    pairs: Amount
    """How many distinct sentence pairs."""
    seed: Seed = 1
    """Another seed gives other sentences of the same language."""


CorpusSource = Annotated[
    TextSource
    | TsvSource
    | JsonlSource
    | TmxSource
    | GettextSource
    | MtdataSource
    | SacrebleuSource
    | PhrasebookSource,
    Field(discriminator="kind"),
]
CorpusSources = Annotated[tuple[CorpusSource, ...], Strict(False)]


class DataSettings(Section):
    source_language: Text
    """Language code of the source side, as in ISO 639: en."""
    target_language: Text
    """Language code of the target side: de."""
    folder: Text = "."
    """Relative file names of the sources are looked up here."""
    cache: Text = ""
    """Folder for what is fetched; empty: dragoman in the user's cache folder."""
    mirror: Address = ""
    """Fetch from here instead: an address under which <host>/<path> of each file is found."""
    prepared: Text = ""
    """Folder for tokenizer and shards; empty: prepared/<name of the recipe>."""
    train: Annotated[CorpusSources, Field(min_length=1)]
    """What to learn from: one table a source."""
    validation: Annotated[CorpusSources, Field(min_length=1)]
    """What to measure on during training."""
    test: CorpusSources = ()
    """What `dragoman evaluate` measures on."""
    max_length: Annotated[int, between(1, 100_000)] = 256
    """Training pairs with more pieces than this on either side are dropped, and counted."""

    @property
    def cache_folder(self) -> Path:
        if self.cache:
            return Path(self.cache)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"


class CleaningSettings(Section):
    """Of training pairs; validation and test keep every line."""

    unicode_form: Literal["NFC", "NFKC", "none"] = "NFC"
    """Unicode normal form of both sides; NFKC also makes one of full-width and other variants."""
    max_characters: Annotated[int, between(1, 10_000_000)] = 2000
    """Pairs with a longer side are dropped."""
    max_ratio: Annotated[float, above(1, 1_000_000)] = 4.0
    """Pairs whose longer side has more than this many times the characters are dropped."""
    drop_copies: bool = True
    """Drop pairs whose two sides are the same."""
    scripts: bool = True
    """Drop pairs with a side whose letters are mostly of another script than its language's."""
    languages: bool = False
    """Drop pairs with a side that is surely in another language; needs dragoman[language]."""
    duplicates: Literal["near", "exact", "keep"] = "near"
    """Which pairs count as the same, to keep the first of them; near: equal but for case,
    punctuation, digits and spaces."""
    drop_leaks: bool = True
    """Drop training pairs that occur in validation or test, by the same measure."""


class TokenizerSettings(Section):
    kind: Literal["bpe", "unigram"] = "bpe"
    """How SentencePiece learns its pieces, from both sides together."""
    vocabulary: Annotated[int, between(5, 1_000_000)] = 32768
    """Number of pieces, the four special ones included."""
    sample_lines: Amount = 2_000_000
    """Learn from at most this many lines, spread evenly over the training text."""
    character_coverage: Annotated[float, between(0.98, 1)] = 1.0
    """Share of the characters that get a piece; the rest is unknown."""
    model: Text = ""
    """An existing SentencePiece .model file to use instead of learning one."""


class ModelSettings(Section):
    preset: Literal["transformer-tiny", "transformer-small", "transformer-base", "transformer-big"]
    """Gives layers, width, heads and filter; each can be set on its own beside it."""
    encoder_layers: Layers
    """Layers that read the source."""
    decoder_layers: Layers
    """Layers that write the target."""
    width: Annotated[int, Field(multiple_of=2), between(2, 65_536)]
    """Size of the vector that stands for one token."""
    heads: Annotated[int, between(1, 1024)]
    """Attention heads; divides width."""
    filter: Annotated[int, between(1, 1_048_576)]
    """Inner size of the feed-forward part."""
    dropout: DropoutShare = 0.1
    """On embeddings and on what each part of a layer adds."""
    attention_dropout: DropoutShare = 0.0
    """On attention weights."""
    activation_dropout: DropoutShare = 0.0
    """Inside the feed-forward part."""

    @model_validator(mode="before")
    @classmethod
    def fill_from_preset(cls, given: Any) -> Any:
        preset = given.get("preset") if isinstance(given, dict) else None
        if not isinstance(preset, str) or preset not in PRESETS:
            return given
        shape = dict(PRESETS[preset])
        layers = shape.pop("layers")
        return {"encoder_layers": layers, "decoder_layers": layers} | shape | given

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} does not divide width = {self.width}")
        return self


class ScheduleSettings(Section):
    kind: Literal["noam", "inverse-square-root", "cosine", "linear", "constant"] = "noam"
    """Shape of the learning rate over the steps, after a linear warm-up."""
    scale: Annotated[float, above(0, 1000)] = 2.0
    """Noam only, a factor and not a rate.
    Rate = scale / sqrt(width) x min(1 / sqrt(step), step / warmup_steps^1.5)."""
    peak: LearningRate = 1e-3
    """All but Noam: the rate at the end of the warm-up."""
    warmup_steps: StepsOrZero = 8000
    """Steps during which the rate rises in a straight line."""
    final: Annotated[float, between(0, 100)] = 0.0
    """Cosine and linear: the rate at the last step."""


class OptimizerSettings(Section):
    beta1: Share = 0.9
    """Adam: memory of the gradient's mean."""
    beta2: Share = 0.997
    """Adam: memory of the gradient's square."""
    epsilon: Annotated[float, above(0, 1)] = 1e-9
    """Adam: keeps the division finite."""
    weight_decay: Annotated[float, between(0, 100)] = 0.0
    """Decoupled (AdamW), on matrices only, not on biases and norms."""
    clip_norm: Annotated[float, between(0, 1_000_000)] = 0.0
    """Gradients longer than this are shortened to it; 0: never."""


class TrainingSettings(Section):
    seed: Seed = 1
    """Initial weights, order of the data and dropout follow from it."""
    tokens_per_update: Amount = 25_000
    """Target tokens in an average update, over all workers together, whatever their number."""
    micro_batch_tokens: Amount = 4096
    """Memory's bound: padded tokens of one forward and backward on one worker, on either side."""
    steps: Steps | None = None
    """Stop after this many updates."""
    epochs: Annotated[int, between(1, 1_000_000)] | None = None
    """Stop after this many times through the training data."""
    hours: Hours | None = None
    """Stop after this much wall time, all attempts together."""
    patience: Amount | None = None
    """Stop after this many evaluations in a row without a new best."""
    label_smoothing: Share = 0.1
    """Share of the probability that is spread over all pieces."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Of forward and backward; weights and optimizer stay fp32. fp16 comes with loss scaling."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: CUDA where there is a device."""
    sharding: Literal["none", "full"] = "none"
    """full: each worker holds a part of weights, gradients and optimizer, for models that outgrow
    one device; costs more communication, and a worker that runs out of memory ends the attempt."""
    compare_every_steps: StepsOrZero = 500
    """Workers compare their weights after every so many updates, and at the start; 0: never.
    Sharded ones have no weights in common to compare."""
    max_skipped: AmountOrZero = 10
    """Updates in a row that may be skipped because loss or gradients are not finite; one more, or a
    loss that has exploded, and the run goes back to an earlier checkpoint with half the rate."""
    max_rollbacks: Annotated[int, between(0, 100)] = 3
    """How often a run goes back like this; the next time it stops and says why."""

    @model_validator(mode="after")
    def ends_some_time(self) -> Self:
        if self.steps is None and self.epochs is None and self.hours is None and not self.patience:
            raise ValueError("nothing ends this run; set one of steps, epochs, hours or patience")
        return self


class EvaluationSettings(Section):
    every_steps: Steps = 2000
    """Measure loss, BLEU and chrF after every so many updates, and after the last."""
    train_sample_pairs: AmountOrZero = 1000
    """Fixed sample of the training pairs on which the loss is measured like on validation."""
    translate_sentences: AmountOrZero = 0
    """Translate only the first so many validation sentences for BLEU; 0: all."""
    samples: Annotated[int, between(0, 1000)] = 3
    """Translations shown in the log after each evaluation."""
    best_by: Literal["loss", "bleu"] = "bleu"
    """What decides on the best checkpoint and on patience."""
    beam: Beam = 1
    """Beam during training; 1: greedy search, the fastest."""


class DecodingSettings(Section):
    beam: Beam = 4
    """Hypotheses kept for each sentence; 1: greedy search."""
    length_penalty: Annotated[float, between(0, 10)] = 0.6
    """Scores are divided by ((5 + length) / 6) to this power; larger: longer translations."""
    max_length_factor: Annotated[float, above(0, 100)] = 1.5
    """A translation has at most this many times the pieces of its source, plus ten."""
    batch_tokens: Amount = 4096
    """Padded source tokens that are translated at once."""


class CheckpointSettings(Section):
    every_steps: Steps | None = None
    """Save after every so many updates, and after every evaluation; unset: as often as the measured
    cost of a save makes worth while, within lost_minutes."""
    lost_minutes: Annotated[float, above(0, 100_000)] = 10.0
    """Without every_steps: how much work a failure may cost."""
    hours_between_failures: Hours = 24.0
    """Without every_steps: how long the machines together work on average until something fails;
    spot machines fail more often."""
    keep_last: Annotated[int, between(1, 1_000_000)] = 3
    """How many of the newest to keep."""
    keep_best: Annotated[int, between(0, 1_000_000)] = 1
    """How many of the best to keep beside them."""
    every_host: bool = True
    """Every host keeps its own copy, unless it shares the folder with another that does; false:
    only the first, whose loss then loses the run."""
    memory_folder: Text = ""
    """A folder in memory, as /dev/shm, for snapshots between those on disk: a killed process loses
    few steps; a lost machine loses what is in memory. Takes three times the state. Empty: none."""
    memory_every_steps: Steps = 50
    """With memory_folder: save there after every so many updates."""


class TelemetrySettings(Section):
    tensorboard: bool = True
    """Write the figures for TensorBoard too, where it is installed."""
    log_every_s: Seconds = 5.0
    """Seconds between two lines of progress when the output is not a terminal."""
    sensors_every_s: Annotated[float, between(0, 86_400)] = 1.0
    """Seconds between two readings of each host's sensors; 0: none."""
    prometheus_port: Annotated[int, between(0, 65_535)] = 0
    """Serve the newest figures to Prometheus on this port of 127.0.0.1, on each host; 0: not."""
    mlflow: Annotated[Text, _without_password(_MLFLOW_LOGIN)] = ""
    """Send the figures to MLflow: address of its server, or a folder as file:mlruns; empty: not."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases: offline writes files to the run for `wandb sync`, online sends at once."""


class PreemptionSettings(Section):
    cloud: Literal["none", "aws", "google"] = "none"
    """Whose metadata service is asked, on every host, whether the host is about to be taken away;
    if so, the run saves and stops. none: nobody is asked, and SIGTERM is the only notice."""
    metadata_address: Annotated[
        Text,
        _written_as(r"(http://[^/\s]+)?", "an address without a path, as http://host:80, or empty"),
    ] = ""
    """Where that service is, as http://127.0.0.1:8080; empty: where the cloud has it."""
    poll_every_s: Seconds = 5.0
    """Seconds between two questions. AWS gives two minutes' notice, Google half a minute."""


class CostSettings(Section):
    host_per_hour: Price = 0.0
    """What one host costs an hour; 0: not known, and no costs are told."""
    currency: Text = "USD"
    """How amounts are written."""


class Config(Section):
    name: RecipeName
    """Names the prepared data and, unless --run says otherwise, the run: runs/<name>."""
    data: DataSettings
    cleaning: CleaningSettings = CleaningSettings()
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: ModelSettings
    training: TrainingSettings
    schedule: ScheduleSettings = ScheduleSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    decoding: DecodingSettings = DecodingSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    preemption: PreemptionSettings = PreemptionSettings()
    cost: CostSettings = CostSettings()

    @model_validator(mode="after")
    def schedule_knows_its_end(self) -> Self:
        if self.schedule.kind in ("cosine", "linear") and self.training.steps is None:
            raise ValueError(
                f"schedule.kind = {self.schedule.kind!r} needs training.steps, its end"
            )
        return self

    @property
    def prepared_folder(self) -> Path:
        return Path(self.data.prepared or Path("prepared") / self.name)


def load_config(recipe: Path | str, overrides: Overrides = ()) -> Config:
    """Reads a recipe: a file, or the name of one that is shipped, as demo.

    `overrides` change keys of it: {"training.steps": 100}, or texts as for --set on the command
    line, ["training.steps=100"].
    """
    path = find_recipe(recipe)
    try:
        text = read_toml_text(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such recipe; the shipped ones are in the folder recipes"
        ) from None
    return parse_config(text, origin=str(path), overrides=overrides)


def read_toml_text(path: Path) -> str:
    """Of a recipe or a host list that a user names, which may be anything; FileNotFoundError is
    left to the caller."""
    try:
        return read_bounded(path, MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be read as a UTF-8 text file ({error}); name a TOML file"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); name a TOML file of at most 1 MB"
        ) from error


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(
            f"{origin}: not valid TOML: its tables or lists are nested too deeply; flatten them"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin}: not valid TOML: {error}; mend that line") from error
    except ValueError as error:  # Python's own bound on the digits of an integer
        raise ConfigError(
            f"{origin}: not valid TOML: a number has too many digits; shorten it"
        ) from error


def parse_config(text: str, origin: str, overrides: Overrides = ()) -> Config:
    tree = parse_toml(text, origin)
    if isinstance(overrides, str):
        raise ConfigError(f"overrides = {overrides!r} should be a mapping or a list of texts")
    changes = overrides.items() if isinstance(overrides, Mapping) else map(_parsed, overrides)
    for key, value in changes:
        _set(tree, key, value)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        known = [name for name, _, _ in config_keys()]
        raise ConfigError(f"{origin}: {problems_of(error, known)}") from error


def dump_config(config: Config) -> str:
    """The resolved config as TOML; reading it back gives an equal config."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def config_keys() -> Iterator[tuple[str, str, str]]:
    """(dotted key, default as TOML or "", description) of every key a recipe may set."""
    yield from _keys_of(Config, "")


def source_keys() -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """(kind, what it is, its keys as in `config_keys`) of every kind of source."""
    for kind in get_args(get_args(CorpusSource)[0]):
        keys = [key for key in _keys_of(kind, "") if key[0] != "kind"]
        yield get_args(kind.model_fields["kind"].annotation)[0], kind.__doc__ or "", keys


def _keys_of(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in section.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, Section):
            yield from _keys_of(nested, f"{prefix}{name}.")
        else:
            default = field.get_default()
            shown = "" if field.is_required() or default is None else _toml_value(default)
            yield f"{prefix}{name}", shown, _allowed(field) + (field.description or "")


def _allowed(field: FieldInfo) -> str:
    """The choices of a key, or the bounds of its number, as a sentence; empty: anything."""
    if choices := [value for value in get_args(field.annotation) if isinstance(value, str)]:
        return f"One of {', '.join(choices)}. "
    optional = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    for checked in (*field.metadata, *chain.from_iterable(optional)):
        if isinstance(checked, AfterValidator) and isinstance(checked.func, Range):
            return f"A number {checked.func}. "
    return ""


def _toml_value(value: object) -> str:
    as_list = list(value) if isinstance(value, tuple) else value
    return tomli_w.dumps({"x": as_list}).removeprefix("x = ").strip()


def _parsed(override: str) -> tuple[str, Any]:
    """Returns the key and the value of `section.key=value`."""
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write it as section.key=value")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except (ValueError, RecursionError):
        return key.strip(), value  # a bare word, as in --set schedule.kind=cosine


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    place = tree
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise ConfigError(f"--set {key}: {section} is not a section")
    # As TOML would have it; what it does not know is refused with the key's name further on.
    place[last] = os.fspath(value) if isinstance(value, os.PathLike) else value


def problems_of(error: ValidationError, known: Sequence[str] = ()) -> str:
    """What is wrong with a file, as one sentence; `known` as in `sentences_of`."""
    shown = "; ".join(islice(sentences_of(error, known), MOST_PROBLEMS))
    more = len(_problems(error)) - MOST_PROBLEMS
    return f"{shown}; and {more:,} more problem(s)" if more > 0 else shown


def sentences_of(error: ValidationError, known: Sequence[str]) -> Iterator[str]:
    """One for each thing that is wrong; `known` are the dotted keys that would have been right."""
    for problem in _problems(error):
        key = ".".join(_in_one_line(part) for part in problem["loc"])
        match problem["type"]:
            case "extra_forbidden":
                yield f"unknown key {key}{_nearest(key, known)}"
            case "missing":
                yield f"{key} is missing; add it"
            case "union_tag_not_found":
                kinds = "text, tsv, jsonl, tmx, gettext, mtdata, sacrebleu, phrasebook"
                yield f"{key} needs a kind: one of {kinds}"
            case "union_tag_invalid":
                tags = problem["ctx"]
                yield f"{key}.kind = {_shown(tags['tag'])} should be one of {tags['expected_tags']}"
            case "too_short":
                yield f"{key} is too short; at least {problem['ctx']['min_length']} must be there"
            case "value_error":
                where = f"{key}: " if key else ""
                yield f"{where}{problem['ctx']['error']}"
            case _:
                subject, _, wish = problem["msg"].rpartition(" should ")
                wish = wish.replace("be a valid ", "be ") if subject else f"be {wish}"
                yield f"{key} = {_shown(problem['input'])} should {wish}"


def _problems(error: ValidationError) -> list[ErrorDetails]:
    """Without those that follow from others: items that are wrong do not count as items, so
    pydantic also calls their list too short."""
    problems = error.errors()
    outer = {loc[:depth] for loc in (p["loc"] for p in problems) for depth in range(len(loc))}
    return [p for p in problems if not (p["type"] == "too_short" and p["loc"] in outer)]


def _in_one_line(part: int | str) -> str:
    text = str(part)
    return text if text.isprintable() and len(text) <= LONGEST_SHOWN else _shown(part)


def _shown(value: object) -> str:
    try:
        text = _LOGIN.sub("://...@", repr(value))
    except (ValueError, RecursionError):  # an integer of thousands of digits, a deep list
        return f"a huge {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _nearest(key: str, keys: Sequence[str]) -> str:
    known = [*keys, *sorted({name.partition(".")[0] for name in keys if "." in name})]
    section, _, last = re.sub(r"\.\d+", "", key).rpartition(".")
    siblings = [name for name in known if name.rpartition(".")[0] == section]
    for candidates in (siblings, known):
        by_last = {name.rpartition(".")[2]: name for name in candidates}
        if close := difflib.get_close_matches(last, by_last, n=1, cutoff=0.7):
            return f"; did you mean {by_last[close[0]]}?"
    if len(siblings) > MANY_KEYS:
        return "; `dragoman config --keys` lists the known ones"
    return f"; known are {', '.join(siblings)}" if siblings else ""
