"""Everything a user may set: a TOML recipe comes in, a strict and frozen `Config` goes out.

Read `config.py` first: it puts the sections of a recipe together and checks them against each
other. Each key is documented where its section declares it: `sources`, `data`, `model`, `training`,
`sync`, `evaluation` and `operation`. `loading` reads a recipe with what overrides it.
"""

from dragoman.config.bounds import (
    LARGEST_INTEGER,
    MOST_BEAM,
    MOST_STEPS,
    Price,
    Range,
    Share,
    StepsOrZero,
    above,
    between,
)
from dragoman.config.config import Config, as_before_accumulation, config_keys
from dragoman.config.data import CleaningSettings, DataSettings, TokenizerSettings
from dragoman.config.evaluation import DecodingSettings, EvaluationSettings
from dragoman.config.loading import PATH_KEYS, Overrides, dump_config, load_config, parse_config
from dragoman.config.model import PRESETS, ModelSettings
from dragoman.config.operation import (
    CheckpointSettings,
    CostSettings,
    NotifySettings,
    PreemptionSettings,
    TelemetrySettings,
)
from dragoman.config.problems import problems_of, sentences_of
from dragoman.config.section import Section, toml_value
from dragoman.config.sources import (
    RESERVED_SET_NAMES,
    SOURCE_KINDS,
    CorpusSource,
    GettextSource,
    JsonlSource,
    MtdataSource,
    PhrasebookSource,
    SacrebleuSource,
    TextSource,
    TmxSource,
    TsvSource,
    source_keys,
)
from dragoman.config.sync import SyncSettings
from dragoman.config.texts import Sha256, Text
from dragoman.config.toml import parse_toml, read_toml_text
from dragoman.config.training import OptimizerSettings, ScheduleSettings, TrainingSettings

__all__ = [
    "LARGEST_INTEGER",
    "MOST_BEAM",
    "MOST_STEPS",
    "PATH_KEYS",
    "PRESETS",
    "RESERVED_SET_NAMES",
    "SOURCE_KINDS",
    "CheckpointSettings",
    "CleaningSettings",
    "Config",
    "CorpusSource",
    "CostSettings",
    "DataSettings",
    "DecodingSettings",
    "EvaluationSettings",
    "GettextSource",
    "JsonlSource",
    "ModelSettings",
    "MtdataSource",
    "NotifySettings",
    "OptimizerSettings",
    "Overrides",
    "PhrasebookSource",
    "PreemptionSettings",
    "Price",
    "Range",
    "SacrebleuSource",
    "ScheduleSettings",
    "Section",
    "Sha256",
    "Share",
    "StepsOrZero",
    "SyncSettings",
    "TelemetrySettings",
    "Text",
    "TextSource",
    "TmxSource",
    "TokenizerSettings",
    "TrainingSettings",
    "TsvSource",
    "above",
    "as_before_accumulation",
    "between",
    "config_keys",
    "dump_config",
    "load_config",
    "parse_config",
    "parse_toml",
    "problems_of",
    "read_toml_text",
    "sentences_of",
    "source_keys",
    "toml_value",
]
