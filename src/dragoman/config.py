"""Everything a user may set: a TOML recipe comes in, a strict and frozen `Config` goes out.

Each key is documented where it is declared; `dragoman config --keys` prints those texts.
"""

import difflib
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from dragoman.errors import ConfigError
from dragoman.recipes import SHIPPED, base_folder, find_recipe
from dragoman.rundir import read_bounded

Overrides = Sequence[str] | Mapping[str, Any]

MOST_BYTES = 1_000_000
"""Most bytes of a recipe or a host list."""
PATH_KEYS = (
    "data.folder",
    "data.cache",
    "data.prepared",
    "tokenizer.model",
    "checkpoints.memory_folder",
)
"""Whose values are paths, and absolute in a config. So is the program of `notify.command` where it
is a path; files of sources are in `data.folder`."""
LONGEST_SHOWN = 100
"""Most characters of a wrong value that an error message repeats."""


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
    """Returns a check for text that matches a pattern, described `in_words` in errors."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise PydanticCustomError("text", "{in_words}", {"in_words": in_words})

    return AfterValidator(check)


# Every number has an upper bound: one that is far beyond reason is a typo, and would
# otherwise end in an overflow or an endless loop hours later.
MOST_STEPS = 10**12
MOST_BEAM = 100
LARGEST_INTEGER = 2**63 - 1  # of TOML and of random number generators

USUAL_MICRO_BATCH_TOKENS = 4096


@dataclass(frozen=True)
class RangeOrAuto(Range):
    """The bounds of a whole number that may also be found by the program."""

    def __call__(self, value: Any) -> Any:
        if value == "auto" or (type(value) is int and self.low <= value <= self.high):
            return value
        raise PydanticCustomError("range", "{bounds}", {"bounds": str(self)})

    def __str__(self) -> str:
        return f'{super().__str__()}, or "auto"'


Steps = Annotated[int, between(1, MOST_STEPS)]
StepsOrZero = Annotated[int, between(0, MOST_STEPS)]
Amount = Annotated[int, between(1, 10**9)]
AmountOrZero = Annotated[int, between(0, 10**9)]
NumberOrAuto = Annotated[int | Literal["auto"], PlainValidator(RangeOrAuto(1, 10**9))]
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
    str, _written_as("([A-Za-z_]+-[A-Za-z_]+)?", "two language codes, such as en-de, or empty")
]
TestSetName = Annotated[
    str,
    _written_as(
        "([A-Za-z0-9][A-Za-z0-9._-]{0,99})?",
        "up to 100 letters from a to z or A to Z, digits, dots, hyphens or underscores, beginning "
        "with a letter or a digit, or empty",
    ),
]
RESERVED_SET_NAMES = ("train", "validation", "test")
# As long as a path may be. What is a path or an address cannot hold a line feed or a NUL.
Text = Annotated[str, Field(max_length=4096), AfterValidator(_printable)]

_LOGIN = re.compile(r"://[^/?#\s]*@")


def _without_password(advice: str) -> AfterValidator:
    """Returns a check for addresses without credentials: configs appear in shared reports."""

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

# More than these would no longer be a readable sentence.
MANY_KEYS = 12
MOST_PROBLEMS = 5


def _shape(encoder: int, decoder: int, **sizes: int) -> dict[str, int]:
    return {"encoder_layers": encoder, "decoder_layers": decoder, **sizes}


# Shapes only: what regularizes a model depends on the data, so dropout is a key of its own.
PRESETS: Mapping[str, Mapping[str, int]] = {
    "transformer-tiny": _shape(4, 4, width=128, heads=4, filter=256),
    "transformer-small": _shape(3, 3, width=256, heads=4, filter=1024),
    "transformer-base": _shape(6, 6, width=512, heads=8, filter=2048),
    "transformer-big": _shape(6, 6, width=1024, heads=16, filter=4096),
    # About as many parameters as tiny and base. A decoder layer works for every piece of a
    # translation, one after the other, an encoder layer once a sentence (Kasai et al. 2021).
    "transformer-tiny-deep-shallow": _shape(8, 1, width=128, heads=4, filter=256),
    "transformer-deep-shallow": _shape(12, 1, width=512, heads=8, filter=2048),
}


@dataclass(frozen=True)
class LocalMode:
    """A mode in which workers take steps of their own: its defaults and its bound."""

    defaults: Mapping[str, float]
    most_steps: int
    """Beyond which there is no published evidence that nothing is lost."""


# local: SlowMo (Wang et al. 2020), which lost nothing on translation with 12 steps. Its authors'
# code in fairseq takes a momentum of 0 for up to 16 workers, 0.2 for 32 and 0.5 for 64.
# diloco: Douillard et al. 2023, with fewer steps than their 500, which followed a long exact phase.
LOCAL_MODES: Mapping[str, LocalMode] = {
    "local": LocalMode(
        {"local_steps": 8, "fragments": 4, "outer_rate": 1.0, "outer_momentum": 0.2}, 12
    ),
    "diloco": LocalMode(
        {"local_steps": 30, "fragments": 6, "outer_rate": 0.7, "outer_momentum": 0.9}, 500
    ),
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
    """The keys that all kinds of sources share."""

    weight: Annotated[float, between(0.0001, 1000)] = 1.0
    """How many times per epoch training sees its pairs; below 1: a share of them."""
    languages: LanguagePair = ""
    """Its language pair, such as en-de; empty: that of data. A reversed pair swaps the sides."""
    test_set: TestSetName = ""
    """Test data only: name of the set that it belongs to, which has scores of its own; empty: a set
    of its own, named after its file."""


class TextSource(SourceSettings):
    """Two text files, one sentence per line, where equal line numbers are translations.

    Here and below a file is a name in data.folder or an address (https://..., or s3://, gs:// and
    az:// with the extra storage), either plain or compressed (.gz, .xz, .bz2 or .zst).
    """

    kind: Literal["text"]
    source: Address
    """File of the source language."""
    target: Address
    """File of the target language."""
    sha256: Annotated[tuple[Sha256, ...], Strict(False)] = ()
    """SHA-256 of the source and the target file, checked when they are read."""

    @field_validator("sha256")
    @classmethod
    def one_hash_a_file(cls, hashes: tuple[str, ...]) -> tuple[str, ...]:
        if len(hashes) not in (0, 2):
            given = "1 hash" if len(hashes) == 1 else f"{len(hashes)} hashes"
            raise ValueError(
                f"{given} for 2 files; give one for each of source and target, or none"
            )
        return hashes


class TsvSource(SourceSettings):
    """A table with one pair per line and columns separated by tabs."""

    kind: Literal["tsv"]
    file: Address
    """The table."""
    source_column: Annotated[int, between(1, 10_000)] = 1
    """Counts from 1."""
    target_column: Annotated[int, between(1, 10_000)] = 2
    """Counts from 1."""


class JsonlSource(SourceSettings):
    """One JSON object per line."""

    kind: Literal["jsonl"]
    file: Address
    """The file of objects."""
    source_key: Text
    """Key of the source sentence; dots address nested objects: translation.en."""
    target_key: Text
    """Key of the target sentence."""


class TmxSource(SourceSettings):
    """A translation memory (TMX)."""

    kind: Literal["tmx"]
    file: Address
    """The memory; units that lack one of the languages are skipped."""


class GettextSource(SourceSettings):
    """Message catalogs of programs (.po, .mo), found on every Linux machine in /usr/share/locale.

    Messages are written in one language, usually English, and translated into the other.
    """

    kind: Literal["gettext"]
    folder: Text
    """Folder to search for catalogs of the target language."""


class MtdataSource(SourceSettings):
    """A public corpus by its mtdata name, such as Statmt-europarl-7-deu-eng."""

    kind: Literal["mtdata"]
    name: Text
    """Downloaded into data.cache; all except the WMT16 corpora need dragoman[mtdata]."""


class SacrebleuSource(SourceSettings):
    """A test set by its sacreBLEU name, such as wmt14/full."""

    kind: Literal["sacrebleu"]
    name: Text
    """Downloaded into data.cache."""


class PhrasebookSource(SourceSettings):
    """English-German sentences generated by the built-in grammar."""

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
    """ISO 639 code of the source language: en."""
    target_language: Text
    """ISO 639 code of the target language: de."""
    folder: Text = "."
    """Folder in which the files of the sources are; as all paths, relative to the recipe's own."""
    cache: Text = ""
    """Folder for downloads; empty: dragoman in the user's cache folder."""
    mirror: Address = ""
    """Address to download from instead; it must serve each file as <host>/<path>."""
    prepared: Text = ""
    """Folder for tokenizer and shards; empty: prepared/<name of the recipe> in the current
    folder."""
    prepared_from: Address = ""
    """Address of prepared data that `dragoman prepare --publish` has put there: s3://, gs://,
    az://, https:// or file://. Hosts fetch it into data.prepared by themselves, and train while
    training tokens still arrive. Needs dragoman[storage]."""
    prepared_max_bytes: Annotated[int, between(0, LARGEST_INTEGER)] = 0
    """Most bytes of training tokens from data.prepared_from that a host keeps, at least two blocks
    (data.block_pairs); 0: all."""
    train: Annotated[CorpusSources, Field(min_length=1)]
    """Training data: one table per source."""
    validation: Annotated[CorpusSources, Field(min_length=1)]
    """Validation data, evaluated during training."""
    test: CorpusSources = ()
    """Test data for `dragoman evaluate`."""
    max_length: Annotated[int, between(1, 100_000)] = 256
    """Training pairs with more pieces than this on either side are dropped and counted."""
    block_pairs: AmountOrZero = 0
    """Training pairs that are shuffled together, in whole shards of up to 100,000 pairs. An epoch
    goes through such blocks one after the other, so that a host needs one or two of them at a
    time; fewer pairs mix less well. 0: all pairs are one block."""

    @property
    def cache_folder(self) -> Path:
        if self.cache:
            return Path(self.cache)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"


class CleaningSettings(Section):
    """Applies to training pairs; validation and test keep every line."""

    unicode_form: Literal["NFC", "NFKC", "none"] = "NFC"
    """Unicode normalization of both sides; NFKC also unifies full-width and other variants."""
    max_characters: Annotated[int, between(1, 10_000_000)] = 2000
    """Drop pairs with a longer side."""
    max_ratio: Annotated[float, above(1, 1_000_000)] = 4.0
    """Drop pairs whose longer side has more than this many times the characters of the other."""
    drop_copies: bool = True
    """Drop pairs whose two sides are identical."""
    scripts: bool = True
    """Drop pairs with a side whose letters are mostly not of its language's script."""
    languages: bool = False
    """Drop pairs with a side that is clearly in another language; needs dragoman[language]."""
    duplicates: Literal["near", "exact", "keep"] = "near"
    """Which pairs count as duplicates, of which only the first is kept; near: equal except for
    case, punctuation, digits and spaces."""
    drop_leaks: bool = True
    """Drop training pairs that occur in validation or test, by the same measure."""


class TokenizerSettings(Section):
    kind: Literal["bpe", "unigram"] = "bpe"
    """How SentencePiece learns its pieces, from both sides together."""
    vocabulary: Annotated[int, between(5, 1_000_000)] = 32768
    """Number of pieces, including the four special ones."""
    sample_lines: Amount = 2_000_000
    """Learn from at most this many lines, sampled evenly from the training text."""
    character_coverage: Annotated[float, between(0.98, 1)] = 1.0
    """Share of all characters that are covered by pieces; the rest become unknown."""
    model: Text = ""
    """An existing SentencePiece .model file to use instead of learning one; its number of pieces
    counts, and not vocabulary."""


class ModelSettings(Section):
    preset: Literal[
        "transformer-tiny",
        "transformer-small",
        "transformer-base",
        "transformer-big",
        "transformer-tiny-deep-shallow",
        "transformer-deep-shallow",
    ]
    """Sets layers, width, heads and filter; each can be overridden on its own. Those named
    deep-shallow have many encoder layers and one decoder layer, and translate faster."""
    encoder_layers: Layers
    """Number of encoder layers."""
    decoder_layers: Layers
    """Number of decoder layers."""
    width: Annotated[int, Field(multiple_of=2), between(2, 65_536)]
    """Size of the vector that represents one token."""
    heads: Annotated[int, between(1, 1024)]
    """Number of attention heads; must divide width."""
    filter: Annotated[int, between(1, 1_048_576)]
    """Inner size of the feed-forward layers."""
    dropout: DropoutShare = 0.1
    """Dropout on embeddings and on the output of each sublayer."""
    attention_dropout: DropoutShare = 0.0
    """Dropout on attention weights."""
    activation_dropout: DropoutShare = 0.0
    """Dropout inside the feed-forward layers."""

    @model_validator(mode="before")
    @classmethod
    def fill_from_preset(cls, given: Any) -> Any:
        preset = given.get("preset") if isinstance(given, dict) else None
        if not isinstance(preset, str) or preset not in PRESETS:
            return given
        return {**PRESETS[preset], **given}

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} does not divide width = {self.width}")
        return self


Tail = Annotated[tuple[Annotated[int, between(1, MOST_STEPS)], LearningRate], Strict(False)]


class ScheduleSettings(Section):
    kind: Literal["noam", "inverse-square-root", "cosine", "linear", "constant"] = "noam"
    """Shape of the learning rate over the steps, after a linear warm-up."""
    scale: Annotated[float, above(0, 1000)] = 2.0
    """Noam only; a factor, not a rate.
    Rate = scale / sqrt(width) x min(1 / sqrt(step), step / warmup_steps^1.5)."""
    peak: LearningRate = 1e-3
    """All but Noam: the rate at the end of the warm-up."""
    warmup_steps: StepsOrZero = 8000
    """Steps during which the rate rises linearly."""
    final: Annotated[float, between(0, 100)] = 0.0
    """Cosine and linear: the rate at the last step."""
    tails: Annotated[tuple[Tail, ...], Strict(False)] = ()
    """Cosine and linear, to train on after their end: [[step, rate], ...]. The curve ends at the
    first of these steps. After each of them the rate falls in a straight line from this rate to
    schedule.final, which it reaches at the next of them or at training.steps."""


class OptimizerSettings(Section):
    kind: Literal["adamw", "schedule-free", "muon"] = "adamw"
    """schedule-free: AdamW that averages its weights instead of lowering its rate, so that a run
    can be stopped at any step; needs schedule.kind = constant. muon: Muon for the matrices of the
    layers, AdamW for embeddings, norms and biases."""
    beta1: Share = 0.9
    """Adam: decay of the gradient's running mean. Schedule-Free: how close to the average the
    gradients are taken."""
    beta2: Share = 0.997
    """Adam: decay of the squared gradient's running mean."""
    epsilon: Annotated[float, above(0, 1)] = 1e-9
    """Adam: keeps the division finite."""
    weight_decay: Annotated[float, between(0, 100)] = 0.0
    """Decoupled (AdamW), on matrices only, not on biases and norms."""
    clip_norm: Annotated[float, between(0, 1_000_000)] = 0.0
    """Clip the gradient norm to this; 0: never."""
    muon_rate_factor: Annotated[float, between(0.001, 1000)] = 1.0
    """Muon only: its rate, as a multiple of the schedule's. At 1 it changes weights by as much as
    AdamW at that rate usually does."""
    average_decay: Annotated[float, between(0, 0.999999)] = 0.0
    """Evaluate, keep and translate with an exponential moving average of the weights, which keeps
    this share of itself at each update: 0.999 is about the last 1,000 updates; 0: off."""

    @property
    def averages(self) -> bool:
        """Whether an average of the weights translates, and not the weights that train."""
        return self.kind == "schedule-free" or self.average_decay > 0


class TrainingSettings(Section):
    seed: Seed = 1
    """Determines initial weights, order of the data, dropout and subword dropout."""
    tokens_per_update: Amount = 25_000
    """Target tokens in an average update over all workers together, however many there are."""
    micro_batch_tokens: NumberOrAuto = USUAL_MICRO_BATCH_TOKENS
    """Most padded tokens per side in one forward and backward pass of a worker; bounds memory.
    auto: the most that fits on every worker, found when a run starts and kept in its config."""
    steps: Steps | None = None
    """Stop after this many updates."""
    epochs: Annotated[int, between(1, 1_000_000)] | None = None
    """Stop after this many passes over the training data."""
    hours: Hours | None = None
    """Stop after this much wall time over all attempts."""
    patience: Amount | None = None
    """Stop after this many evaluations in a row without a new best."""
    label_smoothing: Share = 0.1
    """Share of the probability that is spread evenly over all pieces."""
    subword_dropout: DropoutShare = 0.0
    """BPE-dropout: share of the merges that are dropped, drawn anew for every word of a step, on
    both sides; 0: none. 0.1 is usual. Words get more pieces, and so batches fewer pairs."""
    r_drop: Annotated[float, between(0, 100)] = 0.0
    """R-Drop: weight of the divergence between two passes of each pair with different dropout; 0:
    one pass. Twice the computing; published for translation with 5, and 1 is worth trying too."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Of forward and backward; weights and optimizer stay in fp32. fp16 uses loss scaling."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: CUDA if there is a device."""
    sharding: Literal["none", "full"] = "none"
    """full: each worker holds a part of weights, gradients and optimizer, for models too large for
    one device; needs more communication, and a worker out of memory ends the attempt."""
    compare_every_steps: StepsOrZero = 500
    """Compare the weights of all workers every this many updates, and at the start; 0: never.
    Sharded workers have no common weights to compare."""
    max_skipped: AmountOrZero = 10
    """Updates in a row that may be skipped because loss or gradients are not finite; one more, or
    an exploded loss, and the run rolls back to an earlier checkpoint with half the rate."""
    max_rollbacks: Annotated[int, between(0, 100)] = 3
    """Most rollbacks of a run; instead of one more, it stops with an error."""

    @property
    def passes(self) -> int:
        """Returns how often a pair passes the model in a step."""
        return 2 if self.r_drop else 1

    @property
    def micro_batch_limit(self) -> int:
        """Returns micro_batch_tokens; where it is auto and not found yet, what is usual."""
        tokens = self.micro_batch_tokens
        return USUAL_MICRO_BATCH_TOKENS if tokens == "auto" else tokens

    @property
    def pairs_fill_tokens(self) -> int:
        """Returns the most padded tokens per side of the pairs of a micro-batch."""
        return self.micro_batch_limit // self.passes

    @model_validator(mode="after")
    def micro_batches_hold_a_pair(self) -> Self:
        if not self.pairs_fill_tokens:
            raise ValueError(
                f"training.micro_batch_tokens = {self.micro_batch_tokens} is too little for one "
                f"piece, which training.r_drop = {self.r_drop:g} computes twice; raise it"
            )
        return self

    @model_validator(mode="after")
    def may_run_out_of_memory(self) -> Self:
        if self.micro_batch_tokens == "auto" and self.sharding == "full":
            raise ValueError(
                "training.micro_batch_tokens = 'auto' tries batches on each worker alone, which "
                "cannot hold a model of training.sharding = 'full'; set a number of tokens"
            )
        return self

    @model_validator(mode="after")
    def ends_some_time(self) -> Self:
        if self.steps is None and self.epochs is None and self.hours is None and not self.patience:
            raise ValueError(
                "nothing would end this run; set one of steps, epochs, hours or patience"
            )
        return self


class SyncSettings(Section):
    """How the workers' gradients or weights become common; docs/sync.md compares the modes."""

    mode: Literal["fp32", "bf16", "accumulate", "local", "diloco", "auto"] = "fp32"
    """fp32: gradients are summed exactly in every update. bf16: half the bytes. accumulate: larger
    and fewer updates. local, diloco: workers take steps of their own and then average what they
    have learned, after few or after many steps. auto: fp32, bf16 or local, the first that is fast
    enough for the network, which is measured."""
    bucket_mb: Annotated[float, above(0, 1000)] | None = None
    """fp32, bf16 and accumulate: gradients travel in buckets of so many MB (2^20 bytes) while
    backward makes the next; unset: 25, and with auto, as the measured network suggests."""
    accumulate: Annotated[int, between(2, 64)] | None = None
    """accumulate only: how many updates of the recipe become one. Steps, warm-up and intervals are
    divided by it and rates raised by its square root, so that the run sees the same tokens."""
    accumulate_applied: bool = False
    """Whether the other keys are those of the larger updates already; set in the config of a run,
    never to be set in a recipe."""
    local_steps: Annotated[int, between(2, 500)] | None = None
    """local and diloco: steps between two synchronizations; local: from 2 to 12, unset 8; diloco:
    from 2 to 500, unset 30."""
    group: Literal["rank", "host"] = "rank"
    """local, diloco and auto: who takes steps of its own, each worker, or all workers of a host
    together, which then sum their gradients exactly in every step."""
    wire: Literal["fp32", "bf16", "4bit"] | None = None
    """local and diloco: how differences of weights travel, as 4, 2 or half a byte a value; unset:
    fp32."""
    fragments: Annotated[int, between(1, 500)] | None = None
    """local and diloco: into how many parts the weights are cut, of which each is synchronized at
    its own step of a window; unset: 4 and 6, or local_steps where that is less."""
    delay: Annotated[int, between(0, 499)] | None = None
    """local and diloco: for how many steps computing goes on while a fragment travels; unset:
    local_steps / fragments, so that one is always on its way, and 0 where there is one fragment."""
    mixing: Annotated[float, between(0, 1)] | None = None
    """local and diloco: how much of what a worker has learned while a fragment traveled it adds to
    the common weights; unset: 1, all of it."""
    outer_rate: Annotated[float, above(0, 2)] | None = None
    """local and diloco: how much of the averaged change is applied; unset: 1 and 0.7."""
    outer_momentum: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    """local and diloco: how much of the changes before is added to it; unset: 0.2 and 0.9, of which
    diloco's is Nesterov's."""

    @property
    def is_local(self) -> bool:
        """Whether workers take steps of their own between two synchronizations."""
        return self.mode in LOCAL_MODES

    @property
    def window_steps(self) -> int:
        """Returns the steps from one synchronization of a weight to its next."""
        return (self.local_steps or 1) if self.is_local else 1

    @model_validator(mode="before")
    @classmethod
    def fill_from_mode(cls, given: Any) -> Any:
        mode = given.get("mode") if isinstance(given, dict) else None
        if not isinstance(mode, str) or mode not in LOCAL_MODES:
            return given
        given = {key: value for key, value in given.items() if value is not None}  # which is unset
        filled = {"wire": "fp32", "mixing": 1.0, **LOCAL_MODES[mode].defaults, **given}
        steps, fragments = filled["local_steps"], filled["fragments"]
        if not (
            isinstance(steps, int) and isinstance(fragments, int) and min(steps, fragments) > 0
        ):
            return filled  # which is about to be refused
        if "fragments" not in given:
            filled["fragments"] = fragments = max(1, min(fragments, steps))
        return {"delay": steps // fragments if fragments > 1 else 0, **filled}

    @model_validator(mode="after")
    def keys_belong_to_the_mode(self) -> Self:
        of_accumulate: dict[str, object] = {
            "accumulate": self.accumulate,
            "accumulate_applied": self.accumulate_applied or None,
        }
        of_local: dict[str, object] = {
            "local_steps": self.local_steps,
            "wire": self.wire,
            "fragments": self.fragments,
            "delay": self.delay,
            "mixing": self.mixing,
            "outer_rate": self.outer_rate,
            "outer_momentum": self.outer_momentum,
        }
        if self.mode != "auto":
            of_local["group"] = None if self.group == "rank" else self.group
        of_gradients: dict[str, object] = {"bucket_mb": self.bucket_mb}
        if self.mode == "accumulate":
            if self.accumulate is None:
                raise ValueError(
                    "sync.mode = 'accumulate' needs sync.accumulate, by which updates get larger"
                )
            foreign = of_local
        else:
            foreign = of_accumulate | (of_gradients if self.is_local else of_local)
            if self.mode == "auto":
                foreign |= of_gradients
        for key, value in foreign.items():
            if value is not None:
                raise ValueError(
                    f"sync.{key} = {value!r} means nothing with sync.mode = {self.mode!r}; remove "
                    "it, or choose another mode"
                )
        if self.is_local and self.local_steps is not None:
            for key, value, most in (
                ("fragments", self.fragments, self.local_steps),
                ("delay", self.delay, self.local_steps - 1),
            ):
                if value is not None and value > most:
                    raise ValueError(
                        f"sync.{key} = {value} is more than {most}, the most with "
                        f"sync.local_steps = {self.local_steps}; lower it, or remove it"
                    )
            most = LOCAL_MODES[self.mode].most_steps
            if self.local_steps > most:
                raise ValueError(
                    f"sync.local_steps = {self.local_steps} is more than the {most} that there is "
                    f"evidence for with sync.mode = {self.mode!r}; lower it, or set sync.mode = "
                    "'diloco', which is made for more"
                )
        return self


class EvaluationSettings(Section):
    every_steps: Steps = 2000
    """Evaluate loss, BLEU and chrF every this many updates, and after the last."""
    train_sample_pairs: AmountOrZero = 1000
    """Size of a fixed sample of training pairs whose loss is evaluated like that of validation."""
    translate_sentences: AmountOrZero = 0
    """Translate only this many validation sentences for BLEU, from the first; 0: all."""
    samples: Annotated[int, between(0, 1000)] = 3
    """Number of translations shown in the log after each evaluation."""
    best_by: Literal["loss", "bleu"] = "bleu"
    """Metric that decides the best checkpoint and patience."""
    beam: Beam = 1
    """Beam size during training; 1: greedy search, the fastest."""
    beside: bool = False
    """Translate and score beside training: a process on idle cores of the first host does it with
    CTranslate2, and the scores decide at the next evaluation. Losses are still measured at once."""
    beside_threads: Annotated[int, between(0, 4096)] = 0
    """With beside: threads of that process; 0: as many as the host has cores that do not train."""

    @model_validator(mode="after")
    def threads_have_a_process(self) -> Self:
        if self.beside_threads and not self.beside:
            raise ValueError(
                f"beside_threads = {self.beside_threads} means nothing without beside = true; "
                "remove it, or set that"
            )
        return self


class DecodingSettings(Section):
    beam: Beam = 4
    """Hypotheses kept per sentence; 1: greedy search."""
    length_penalty: Annotated[float, between(0, 10)] = 0.6
    """Scores are divided by the number of pieces, the end included, to this power, as in
    CTranslate2 and Hugging Face; larger favors longer translations."""
    max_length_factor: Annotated[float, above(0, 100)] = 1.5
    """A translation has at most this many times the pieces of its source, rounded up to a multiple
    of 16, plus ten."""
    batch_tokens: Amount = 4096
    """Padded source tokens that are translated at once."""


class CheckpointSettings(Section):
    every_steps: Steps | None = None
    """Save every this many updates, and after every evaluation; unset: at the interval that the
    measured cost of a save makes optimal, within lost_minutes."""
    lost_minutes: Annotated[float, above(0, 100_000)] = 10.0
    """Without every_steps: most minutes of work that a failure may lose."""
    hours_between_failures: Hours = 24.0
    """Without every_steps: mean time between failures of all machines together; shorter for spot
    machines."""
    keep_last: Annotated[int, between(1, 1_000_000)] = 3
    """Number of newest checkpoints to keep."""
    keep_best: Annotated[int, between(0, 1_000_000)] = 1
    """Number of best checkpoints to keep in addition."""
    every_host: bool = True
    """Every host keeps its own copy, unless it shares the folder with one that does; false: only
    the first host keeps one, and the run is lost with it."""
    memory_folder: Text = ""
    """A folder in memory, such as /dev/shm, for snapshots between those on disk: a killed process
    loses few steps; a lost machine loses them all. Takes three times the state. Empty: none."""
    memory_every_steps: Steps = 50
    """With memory_folder: save there every this many updates."""
    mirror: Annotated[
        Text,
        _without_password(
            "put credentials into the environment, such as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        ),
        _written_as(
            r"((s3|gs|az|file)://[^\s?#]+)?",
            "an address such as s3://bucket/runs, gs://..., az://... or file:///..., or empty",
        ),
    ] = ""
    """Upload every checkpoint that is kept, and the run's records, to this address and the name of
    the run: a new machine goes on from there. Empty: nowhere."""
    mirror_bytes_per_s: Annotated[int, between(0, 1_000_000_000_000)] = 10_000_000
    """Most bytes per second of a host's uploads to the mirror, on average; 0: no limit."""
    mirror_wait_s: Annotated[float, between(0, 86_400)] = 600.0
    """Most seconds to wait for the last upload at the end of an attempt."""


class TelemetrySettings(Section):
    tensorboard: bool = True
    """Also write metrics for TensorBoard, if it is installed."""
    log_every_s: Seconds = 5.0
    """Seconds between two progress lines when the output is not a terminal."""
    sensors_every_s: Annotated[float, between(0, 86_400)] = 1.0
    """Seconds between two readings of each host's sensors; 0: never."""
    prometheus_port: Annotated[int, between(0, 65_535)] = 0
    """Serve the latest metrics to Prometheus on this port of 127.0.0.1, on each host; 0: off."""
    mlflow: Annotated[Text, _without_password(_MLFLOW_LOGIN)] = ""
    """Send metrics to MLflow: address of its server, or a folder (file:mlruns); empty: off."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases: offline writes files to the run for `wandb sync`, online sends at once."""


class PreemptionSettings(Section):
    cloud: Literal["none", "aws", "google"] = "none"
    """Cloud whose metadata service every host polls for preemption notices; after one, the run
    saves and stops. none: SIGTERM is the only notice."""
    metadata_address: Annotated[
        Text,
        _written_as(
            r"(http://[^/\s]+)?", "an address without a path, such as http://host:80, or empty"
        ),
    ] = ""
    """Address of that service, such as http://127.0.0.1:8080; empty: the cloud's own."""
    poll_every_s: Seconds = 5.0
    """Seconds between two polls. AWS gives two minutes' notice, Google half a minute."""


class CostSettings(Section):
    host_per_hour: Price = 0.0
    """Price of one host per hour; 0: unknown, and no costs are reported."""
    currency: Text = "USD"
    """Currency in which costs are reported."""
    budget: Annotated[float, between(0, 1_000_000_000)] = 0.0
    """The most that a run may cost; 0: no bound. A run whose forecast is above it asks first."""


def _names_a_variable(value: str) -> str:
    # An error that repeats the value would show an address that was written here by mistake.
    if re.fullmatch("([A-Za-z_][A-Za-z0-9_]{0,199})?", value):
        return value
    raise ValueError(
        "should be the name of an environment variable, such as DRAGOMAN_WEBHOOK, which holds the "
        "address; an address in a recipe would be copied to the hosts and shown in the report"
    )


class NotifySettings(Section):
    webhook_variable: Annotated[str, AfterValidator(_names_a_variable)] = ""
    """Environment variable that holds the address of a webhook, which is a secret; empty: none."""
    command: Annotated[tuple[Text, ...], Strict(False)] = ()
    """Program with its arguments, started without a shell, that is given each message; a name that
    is found in PATH, or a path."""
    on: Annotated[tuple[Literal["verdict", "lost", "end"], ...], Strict(False)] = (
        "verdict",
        "lost",
        "end",
    )
    """When to send: a verdict turns bad, a rank or its host is lost, the run ends."""

    @property
    def is_on(self) -> bool:
        return bool(self.on and (self.webhook_variable or self.command))


class Config(Section):
    name: RecipeName
    """Names the prepared data and, unless --run is given, the run: runs/<name>."""
    data: DataSettings
    cleaning: CleaningSettings = CleaningSettings()
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: ModelSettings
    training: TrainingSettings
    schedule: ScheduleSettings = ScheduleSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    sync: SyncSettings = SyncSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    decoding: DecodingSettings = DecodingSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    preemption: PreemptionSettings = PreemptionSettings()
    cost: CostSettings = CostSettings()
    notify: NotifySettings = NotifySettings()

    @model_validator(mode="after")
    def only_test_data_has_named_sets(self) -> Self:
        for split, sources in (("train", self.data.train), ("validation", self.data.validation)):
            for number, source in enumerate(sources):
                if source.test_set:
                    raise ValueError(
                        f"data.{split}.{number}.test_set = {source.test_set!r} names a set of test "
                        "data; remove it, or move its source to data.test"
                    )
        for number, source in enumerate(self.data.test):
            if source.test_set in RESERVED_SET_NAMES:
                name = source.test_set
                raise ValueError(
                    f"data.test.{number}.test_set = {name!r} stands for all {name} data; give the "
                    "set another name"
                )
        return self

    @model_validator(mode="after")
    def schedule_knows_its_end(self) -> Self:
        if self.schedule.kind in ("cosine", "linear") and self.training.steps is None:
            raise ValueError(
                f"schedule.kind = {self.schedule.kind!r} needs training.steps, its end"
            )
        return self

    @model_validator(mode="after")
    def tails_follow_the_schedule(self) -> Self:
        schedule, tails = self.schedule, self.schedule.tails
        if not tails:
            return self
        if schedule.kind not in ("cosine", "linear"):
            raise ValueError(
                "schedule.tails continue a cosine or linear schedule after its end, and "
                f"schedule.kind = {schedule.kind!r} goes on without; remove them"
            )
        steps = [*(step for step, _ in tails), self.training.steps or 0]
        if steps != sorted({*steps}) or steps[0] < schedule.warmup_steps:
            raise ValueError(
                f"schedule.tails = {[[*tail] for tail in tails]} should begin at steps that "
                f"increase, from schedule.warmup_steps = {schedule.warmup_steps} on and below "
                f"training.steps = {self.training.steps}"
            )
        return self

    @model_validator(mode="after")
    def optimizer_goes_with_the_rest(self) -> Self:
        optimizer = self.optimizer
        if optimizer.kind == "schedule-free":
            if self.schedule.kind != "constant":
                raise ValueError(
                    "optimizer.kind = 'schedule-free' needs a rate that stays, and schedule.kind = "
                    f"{self.schedule.kind!r} lowers it; set schedule.kind = 'constant', with its "
                    "rate in schedule.peak"
                )
            if optimizer.average_decay:
                raise ValueError(
                    "optimizer.kind = 'schedule-free' averages its weights already; set "
                    f"optimizer.average_decay = {optimizer.average_decay:g} to 0"
                )
            if not optimizer.beta1:
                raise ValueError(
                    "optimizer.kind = 'schedule-free' needs optimizer.beta1 above 0, or nothing "
                    "would lead back to its average"
                )
        if optimizer.kind != "muon" and optimizer.muon_rate_factor != 1.0:
            raise ValueError(
                f"optimizer.muon_rate_factor = {optimizer.muon_rate_factor:g} means nothing with "
                f"optimizer.kind = {optimizer.kind!r}; remove it, or set the kind to 'muon'"
            )
        if optimizer.kind == "muon" and self.training.sharding == "full":
            raise ValueError(
                "optimizer.kind = 'muon' needs whole matrices, and training.sharding = 'full' "
                "leaves each worker a part; set one of them back"
            )
        return self

    @model_validator(mode="after")
    def has_merges_to_drop(self) -> Self:
        dropped, kind = self.training.subword_dropout, self.tokenizer.kind
        if dropped and kind != "bpe" and not self.tokenizer.model:
            raise ValueError(
                f"training.subword_dropout = {dropped} drops merges, which pieces of "
                f"tokenizer.kind = {kind!r} do not have; set it to 0, or the kind to 'bpe'"
            )
        return self

    @model_validator(mode="after")
    def passes_differ(self) -> Self:
        model = self.model
        if self.training.r_drop and not (
            model.dropout or model.attention_dropout or model.activation_dropout
        ):
            raise ValueError(
                f"training.r_drop = {self.training.r_drop} compares passes that only dropout makes "
                "different, and model.dropout, model.attention_dropout and "
                "model.activation_dropout are all 0; raise one of them, or set it to 0"
            )
        return self

    @model_validator(mode="after")
    def sync_goes_with_the_rest(self) -> Self:
        mode, optimizer = self.sync.mode, self.optimizer
        if self.training.sharding == "full" and (self.sync.is_local or mode in ("bf16", "auto")):
            raise ValueError(
                f"sync.mode = {mode!r} needs workers that hold the whole model, and "
                "training.sharding = 'full' leaves each a part; set one of them back"
            )
        if self.sync.is_local and optimizer.kind == "schedule-free":
            raise ValueError(
                f"sync.mode = {mode!r} averages the weights that train, and optimizer.kind = "
                "'schedule-free' has an average of its own to translate with; set one of them back"
            )
        if self.sync.is_local and optimizer.average_decay:
            raise ValueError(
                f"sync.mode = {mode!r} has common weights only after each synchronization, and "
                f"optimizer.average_decay = {optimizer.average_decay:g} averages those of every "
                "step; set one of them back"
            )
        return self

    @model_validator(mode="after")
    def accumulates(self) -> Self:
        """Returns the config of the larger updates; after all other checks."""
        times = self.sync.accumulate
        if times is None or self.sync.accumulate_applied:
            return self
        return type(self).model_validate(_with_larger_updates(self, times))

    @property
    def prepared_folder(self) -> Path:
        return Path(self.data.prepared or Path("prepared") / self.name)

    @property
    def uses_storage(self) -> bool:
        """Whether workers read from object storage or write to it."""
        return bool(self.checkpoints.mirror or self.data.prepared_from)


COUNTED_IN_UPDATES = (
    "training.steps",
    "training.compare_every_steps",
    "schedule.warmup_steps",
    "evaluation.every_steps",
    "checkpoints.every_steps",
    "checkpoints.memory_every_steps",
)
"""What `sync.accumulate` divides, rounded up."""


def _with_larger_updates(config: Config, times: int) -> dict[str, Any]:
    """Returns the settings of a run whose updates are `times` as large, over the same tokens.

    What counts updates is divided. Rates are raised by the square root, which keeps the noise of
    Adam's steps over the same tokens what it was (Malladi et al. 2022). Noam's formula does that by
    itself: at a step that is divided, with a warm-up that is divided, it is higher by the root.
    """
    tree = config.model_dump()
    training, schedule, optimizer = tree["training"], tree["schedule"], tree["optimizer"]
    training["tokens_per_update"] *= times
    schedule["peak"] *= math.sqrt(times)
    schedule["final"] *= math.sqrt(times)
    schedule["tails"] = [
        (-(-step // times), rate * math.sqrt(times)) for step, rate in schedule["tails"]
    ]
    optimizer["average_decay"] **= times
    for dotted in COUNTED_IN_UPDATES:
        section, _, key = dotted.partition(".")
        if tree[section][key] is not None:
            tree[section][key] = -(-tree[section][key] // times)
    tree["sync"]["accumulate_applied"] = True
    return tree


def as_before_accumulation(config: Config, key: str, value: Any) -> Any:
    """Returns what a recipe has to say for this value in the config of its run: the same, unless
    `sync.accumulate` converts it."""
    times = config.sync.accumulate
    if times is None or value is None:
        return value
    if key in COUNTED_IN_UPDATES:
        return value * times
    if key == "training.tokens_per_update":
        return -(-value // times)
    if key in ("schedule.peak", "schedule.final"):
        return value / math.sqrt(times)
    if key == "schedule.tails":
        return tuple((step * times, rate / math.sqrt(times)) for step, rate in value)
    if key == "optimizer.average_decay":
        return value ** (1 / times)
    return value


def load_config(recipe: Path | str, overrides: Overrides = ()) -> Config:
    """Reads a recipe: a file, or the name of a shipped one, such as demo.

    `overrides` change keys of it: {"training.steps": 100}, or texts as for --set on the command
    line, ["training.steps=100"]. Relative paths in the recipe begin at its folder, those in
    `overrides` at the current folder; in the config they are absolute.
    """
    path = find_recipe(recipe)
    try:
        text = read_toml_text(path)
    except FileNotFoundError:
        close = difflib.get_close_matches(path.stem.lower(), SHIPPED, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(
            f"{path}: no such recipe; name a file, or one of the shipped ones: "
            f"{', '.join(SHIPPED)}{meant}"
        ) from None
    return parse_config(text, str(path), overrides, base_folder(path))


def read_toml_text(path: Path) -> str:
    """Reads a recipe or a host list that a user names, which may be any file.

    FileNotFoundError is left to the caller."""
    try:
        # Editors on Windows begin a file with a byte order mark, which TOML does not allow.
        return read_bounded(path, MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be read as UTF-8 text (byte {error.start + 1:,} is not); name a TOML "
            "file, saved as UTF-8"
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
        raise ConfigError(f"{origin}: not valid TOML: {_toml_problem(str(error), text)}") from error
    except ValueError as error:  # Python's own bound on the digits of an integer
        raise ConfigError(
            f"{origin}: not valid TOML: a number has too many digits; shorten it"
        ) from error


_LINE_HINTS = {
    "Cannot overwrite": "the key is there twice; keep one of the two",
    "Cannot declare": "the section is there twice; put its keys together",
    "Invalid value": "its value cannot be read; write text in straight quotes, numbers and true or "
    "false without",
    "Expected newline": "something follows its value; write one key a line, numbers with a decimal "
    "point, and lists in [ ]",
    "Expected '='": "no value follows; write it as name = value",
}
"""How a parser's message begins -> what is wrong, and what to do."""


def _toml_problem(message: str, text: str) -> str:
    """Returns what is wrong with which line: its key is repeated, and its value, which may be a
    secret, is not."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message)
    if not found:
        return f"{message}; correct it"
    lines = text.split("\n")
    number = int(found[1] or len(lines))
    line = lines[number - 1].strip()
    key = line if re.fullmatch(r"\[+[^\[\]]+\]+", line) else line.partition("=")[0].strip()
    is_key = key != line or line.startswith("[")
    shown = f", {_in_one_line(key)}" if key and is_key else ""
    for begins, hint in _LINE_HINTS.items():
        if message.startswith(begins):
            return f"line {number:,}{shown}: {hint}"
    return f"line {number:,}{shown}: {message[: found.start()]}; correct that line"


def parse_config(
    text: str, origin: str, overrides: Overrides = (), folder: Path | None = None
) -> Config:
    """`folder` is where relative paths in the text begin; None: at the current folder, as those in
    `overrides` always do."""
    here = Path.cwd()
    tree = _with_absolute_paths(parse_toml(text, origin), folder or here)
    if isinstance(overrides, str | bytes) or not (
        isinstance(overrides, Iterable) and all(isinstance(part, str) for part in overrides)
    ):
        raise ConfigError(f"overrides = {overrides!r} should be a mapping or a list of texts")
    changes = _leaves(overrides) if isinstance(overrides, Mapping) else map(_parsed, overrides)
    for key, value in changes:
        _set(tree, key, _absolute(key, value, here))
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        known = [name for name, _, _ in config_keys()]
        of_sources = dict.fromkeys(name for _, _, keys in source_keys() for name, _, _ in keys)
        for split in ("train", "validation", "test"):
            known += [f"data.{split}.{name}" for name in of_sources]
        raise ConfigError(f"{origin}: {problems_of(error, known)}") from error


def _with_absolute_paths(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns a recipe whose relative paths begin at `folder`, also the one that it leaves out."""
    data = tree.get("data")
    if isinstance(data, dict):
        tree = {**tree, "data": {"folder": DataSettings.model_fields["folder"].default, **data}}
    return {key: _absolute(key, value, folder) for key, value in tree.items()}


def _absolute(key: str, value: Any, folder: Path) -> Any:
    """Returns the value of a key, or of a section, with its paths absolute."""
    if isinstance(value, Mapping):
        return {name: _absolute(f"{key}.{name}", of_it, folder) for name, of_it in value.items()}
    if key in PATH_KEYS and isinstance(value, str | os.PathLike):
        return _from_folder(os.fspath(value), folder)
    if key == "notify.command" and isinstance(value, list | tuple) and value:
        program = value[0]
        is_path = isinstance(program, str) and "/" in program  # others are found in PATH
        return [_from_folder(program, folder) if is_path else program, *value[1:]]
    return value


def _from_folder(path: str, folder: Path) -> str:
    # What is empty means a default, and what cannot be printed is about to be refused.
    return os.path.normpath(folder / path) if path and path.isprintable() else path


def _leaves(overrides: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Yields dotted keys with their values; of a section, only the keys that it names."""
    for key, value in overrides.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def dump_config(config: Config) -> str:
    """Returns the resolved config as TOML; reading it back gives an equal config."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def config_keys() -> Iterator[tuple[str, str, str]]:
    """Yields (dotted key, default as TOML or "", description) of every key a recipe may set."""
    yield from _keys_of(Config, "")


def source_keys() -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Yields (kind, description, keys as in `config_keys`) of every kind of source."""
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
    """Returns the choices of a key or the bounds of its number as a sentence; empty if free."""
    if choices := [value for value in get_args(field.annotation) if isinstance(value, str)]:
        return f"One of {', '.join(choices)}. "
    optional = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    for checked in (*field.metadata, *chain.from_iterable(optional)):
        if isinstance(checked, AfterValidator | PlainValidator) and isinstance(checked.func, Range):
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
    # As TOML would have it; unknown types are refused with the key's name later.
    place[last] = os.fspath(value) if isinstance(value, os.PathLike) else value


def problems_of(error: ValidationError, known: Sequence[str] = ()) -> str:
    """Returns what is wrong with a file, as one sentence; `known` as in `sentences_of`."""
    shown = "; ".join(islice(sentences_of(error, known), MOST_PROBLEMS))
    more = len(_problems(error)) - MOST_PROBLEMS
    return f"{shown}; and {more:,} more problem(s)" if more > 0 else shown


def sentences_of(error: ValidationError, known: Sequence[str]) -> Iterator[str]:
    """Yields a sentence per error; `known` are the dotted keys that are allowed."""
    for problem in _problems(error):
        key = ".".join(_in_one_line(part) for part in _place(problem))
        match problem["type"]:
            case "extra_forbidden":
                yield f"unknown key {key}{_nearest(key, known and _known_beside(problem, known))}"
            case "missing":
                yield f"{key} is missing; add it"
            case "union_tag_not_found":
                yield f"{key} needs a kind: one of {', '.join(_source_kinds())}"
            case "union_tag_invalid":
                yield _unknown_kind(key, problem["ctx"]["tag"])
            case "too_short":
                yield f"{key} is too short; at least {problem['ctx']['min_length']} must be there"
            case "value_error":
                where = f"{key}: " if key else ""
                yield f"{where}{problem['ctx']['error']}"
            case kind if kind in _WANTED_TYPES:
                yield f"{key} = {_shown(problem['input'])} should be {_WANTED_TYPES[kind]}"
            case _:
                subject, _, wish = problem["msg"].rpartition(" should ")
                wish = wish.replace("be a valid ", "be ") if subject else f"be {wish}"
                yield f"{key} = {_shown(problem['input'])} should {wish}"


_WANTED_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
"""What pydantic calls an error -> what the value should have been."""


def _source_kinds() -> list[str]:
    return [kind for kind, _, _ in source_keys()]


def _unknown_kind(key: str, kind: str) -> str:
    kinds = _source_kinds()
    close = difflib.get_close_matches(kind, kinds, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    of_all = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    return f"{key}.kind = {_shown(kind)} should be one of {of_all}{meant}"


def _place(problem: ErrorDetails) -> tuple[int | str, ...]:
    """Returns the key of a problem as a recipe has it: pydantic adds the kind of a source."""
    place = problem["loc"]
    return (*place[:3], *place[4:]) if _is_in_source(place) else place


def _known_beside(problem: ErrorDetails, known: Sequence[str]) -> Sequence[str]:
    """Returns the keys that may stand in the place of a key: a source has those of its kind."""
    place = problem["loc"]
    if not _is_in_source(place):
        return known
    (keys,) = (keys for kind, _, keys in source_keys() if kind == place[3])
    return [f"data.{place[1]}.{name}" for name in ("kind", *(name for name, _, _ in keys))]


def _is_in_source(place: Sequence[int | str]) -> bool:
    return len(place) > 3 and place[0] == "data" and isinstance(place[2], int)


def _problems(error: ValidationError) -> list[ErrorDetails]:
    """Returns the errors without those that follow from others.

    pydantic does not count invalid items, and so also reports their list as too short. An unknown
    preset has no sizes, which are then missing.
    """
    problems = error.errors()
    places = [problem["loc"] for problem in problems]
    preset = ("model", "preset")
    if preset in places:
        problems = [
            p
            for p in problems
            if p["loc"] == preset or not (p["type"] == "missing" and p["loc"][0] == "model")
        ]
    outer = {loc[:depth] for loc in (p["loc"] for p in problems) for depth in range(len(loc))}
    return [p for p in problems if not (p["type"] == "too_short" and p["loc"] in outer)]


def _in_one_line(part: int | str) -> str:
    text = str(part)
    return text if text.isprintable() and len(text) <= LONGEST_SHOWN else _shown(part)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
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
        return "; `dragoman config --keys` lists all keys"
    return f"; known keys are {', '.join(siblings)}" if siblings else ""
