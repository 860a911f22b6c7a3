"""How a model is trained: when a run ends, and its batches, rates and optimizer."""

from typing import Annotated, Literal, Self

from pydantic import Strict, model_validator

from dragoman.config.bounds import (
    Amount,
    AmountOrZero,
    DropoutShare,
    Hours,
    LearningRate,
    NumberOrAuto,
    Seed,
    Share,
    Steps,
    StepsOrZero,
    above,
    between,
)
from dragoman.config.section import Section

USUAL_MICRO_BATCH_TOKENS = 4096
Tail = Annotated[tuple[Steps, LearningRate], Strict(False)]


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
    precision: Literal["fp32", "bf16", "fp16", "auto"] = "fp32"
    """Of forward and backward; weights and optimizer stay in fp32, and in bf16 on a CPU all but
    factors and results of products. fp16 uses loss scaling. auto: bf16 where all workers have units
    for it that make it faster, otherwise fp32; looked up at each start."""
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
