"""The sections of a recipe together, and the checks of what one says against what another says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from dragoman.config.accumulation import CONVERSIONS, with_larger_updates
from dragoman.config.data import CleaningSettings, DataSettings, TokenizerSettings
from dragoman.config.evaluation import DecodingSettings, EvaluationSettings
from dragoman.config.model import ModelSettings
from dragoman.config.operation import (
    CheckpointSettings,
    CostSettings,
    NotifySettings,
    PreemptionSettings,
    TelemetrySettings,
)
from dragoman.config.section import Section, keys_of
from dragoman.config.sources import RESERVED_SET_NAMES
from dragoman.config.sync import SyncSettings
from dragoman.config.texts import RecipeName
from dragoman.config.training import OptimizerSettings, ScheduleSettings, TrainingSettings


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
        return type(self).model_validate(with_larger_updates(self.model_dump(), times))

    def with_training(self, **changes: Any) -> Self:
        """Returns the config with other values in `[training]`, such as those found at a start."""
        training = self.training.model_copy(update=changes)
        return self.model_copy(update={"training": training})

    @property
    def prepared_folder(self) -> Path:
        return Path(self.data.prepared or Path("prepared") / self.name)

    @property
    def uses_storage(self) -> bool:
        """Whether workers read from object storage or write to it."""
        return bool(self.checkpoints.mirror or self.data.prepared_from)


def config_keys() -> Iterator[tuple[str, str, str]]:
    """Yields (dotted key, default as TOML or "", description) of every key a recipe may set."""
    yield from keys_of(Config, "")


def as_before_accumulation(config: Config, key: str, value: Any) -> Any:
    """Returns what a recipe has to say for this value in the config of its run: the same, unless
    `sync.accumulate` converts it."""
    times = config.sync.accumulate
    if times is None or value is None or key not in CONVERSIONS:
        return value
    return CONVERSIONS[key].plain(value, times)
