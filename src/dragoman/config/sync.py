"""How workers synchronize: the modes with their defaults, and which keys belong to which."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from dragoman.config.bounds import Share, above, between
from dragoman.config.section import Section


@dataclass(frozen=True)
class LocalMode:
    """A mode in which workers take steps of their own: its defaults and its bound."""

    defaults: Mapping[str, float]
    most_steps: int
    """Beyond which there is no published evidence that nothing is lost."""


# local: SlowMo (Wang et al. 2020), which lost nothing on translation with 12 steps. Its authors'
# code in fairseq takes a momentum of 0 for up to 16 workers, 0.2 for 32 and 0.5 for 64; with two,
# 0 learned more than 0.2 (docs/sync.md, 2026-11-19).
# diloco: Douillard et al. 2023, with fewer steps than their 500, which followed a long exact phase.
LOCAL_MODES: Mapping[str, LocalMode] = {
    "local": LocalMode(
        {"local_steps": 8, "fragments": 4, "outer_rate": 1.0, "outer_momentum": 0.0}, 12
    ),
    "diloco": LocalMode(
        {"local_steps": 30, "fragments": 6, "outer_rate": 0.7, "outer_momentum": 0.9}, 500
    ),
}


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
    outer_momentum: Share | None = None
    """local and diloco: how much of the changes before is added to it; unset: 0 and 0.9, of which
    diloco's is Nesterov's."""
    rate_factor: Annotated[float, between(0.1, 10)] | None = None
    """local and diloco: by what workers multiply the rate of the schedule in steps that they
    take alone, since their share of a batch has more noise; unset: the square root of their number
    (of hosts, with group = host), 2 at most."""

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
            "rate_factor": self.rate_factor,
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
