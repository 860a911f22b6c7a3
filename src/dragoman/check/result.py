"""What a check has measured: the schema of its JSON file, from which `dragoman plan` forecasts.

Only figures and verdicts are here. Whoever reads a file gets them checked, or an error that names
the key.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.config import problems_of
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import read_json, write_whole

FORMAT = 1
"""Of the file; a reader refuses a newer one."""

Verdict = Literal["good", "warning", "unfit"]
Seconds = Annotated[float, Field(ge=0.0)]
Rate = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Finding(Measured):
    """One line of the verdict: what was looked at, how it is, and in words who causes what."""

    subject: str
    """What was looked at, such as disk, clock, port or path."""
    verdict: Verdict
    sentence: str
    """Names figure, cause and culprit, and what to do unless all is well."""
    hosts: tuple[str, ...] = ()
    """Whom it is about; empty: all of them."""


class HostFacts(Measured):
    """One host, as it has described and timed itself; None: could not be measured."""

    name: str
    address: str
    interface: str
    link_bytes_per_s: float | None
    """What the interface announces."""
    python: str
    torch: str
    dragoman: str
    driver: str | None
    """Version of the GPU driver."""
    cores: int
    workers: Count
    """That training would start there."""
    device: str
    """Name of the devices that training would use."""
    device_memory_bytes: int
    """Of one device; of a CPU, the host's memory shared by its workers."""
    gemm_flops_per_s: Rate | None
    """Of one device in fp32; of a CPU, of one worker while all of the host's compute."""
    free_disk_bytes: int
    disk_bytes_per_s: Rate | None
    """Written and synchronized to the device."""
    clock_offset_s: float
    """Ahead of the machine that checks."""
    price_per_hour: Annotated[float, Field(ge=0.0)] = 0.0
    data_hash: str | None = None
    """Of the prepared data; None: it has none."""


class Transfer(Measured):
    """What one host can send to one other while nobody else sends to or from them."""

    sender: str
    receiver: str
    one_flow_bytes_per_s: Rate
    several_flows_bytes_per_s: Rate
    round_trip_s: Seconds
    """Of a message of a few bytes, the median of several."""


class Collective(Measured):
    """All-reduces over all workers, with the run's own backend, device and interface."""

    backend: str
    ranks: Annotated[int, Field(ge=2)]
    elements: Count
    """Of the largest one, in fp32: the run's gradients, or as many as a few seconds allowed."""
    seconds: tuple[Seconds, ...]
    """Each repetition of the largest one."""
    latency_s: Seconds
    """Of one that carries a single number."""
    all_to_all_s: tuple[Seconds, ...] = ()
    """Each repetition of an exchange in which every worker sends a slice of as many elements to
    every other one, as the modes do that round on the wire. Empty: it was not timed."""
    whole_step_s: tuple[Seconds, ...] = ()
    """Whole steps in the run's own sync mode, gradients traveling beside backward, until the last
    worker had ended: what computing and sums do to each other on one processor is in it. Empty:
    they would have taken too long, or the mode is another than fp32 and bf16."""
    whole_step_mode: str = ""
    """The `sync.mode` of these steps."""


class Computing(Measured):
    """A few real steps of one worker at the run's own shapes, all workers computing beside it.

    Nothing travels between workers meanwhile. The first steps are warm-up and not in it, nor are
    later ones in which memory grew. Where a step takes long, some of its micro-batches are timed
    and stand for all.
    """

    host: str
    rank: int
    step_s: Annotated[tuple[Annotated[float, Field(gt=0.0)], ...], Field(min_length=1)]
    """Each step's forward, backward and update."""
    forward_s: Seconds
    """Of all micro-batches of a step, in the mean."""
    backward_s: Seconds
    """Of all micro-batches of a step, in the mean."""
    last_backward_s: Seconds
    """Of the last micro-batch, beside which gradients can travel."""
    update_s: Seconds
    micro_batches: int
    peak_memory_bytes: int


class CheckResult(Measured):
    format: Count = FORMAT
    dragoman: str
    checked_at: str
    """UTC, ISO 8601."""
    seconds: Seconds
    """That the check has taken."""
    recipe: str | None
    """Name of the recipe it was made for; None: for none, and there is no computing."""
    workload_hash: str | None
    """Of the settings that computing and bytes depend on; see `workload_hash`."""
    parameters: int | None
    hosts: Annotated[tuple[HostFacts, ...], Field(min_length=1)]
    transfers: tuple[Transfer, ...] = ()
    """Of every ordered pair of hosts."""
    collective: Collective | None = None
    computing: tuple[Computing, ...] = ()
    """Of every worker."""
    findings: tuple[Finding, ...] = ()

    @property
    def is_fit(self) -> bool:
        return all(finding.verdict != "unfit" for finding in self.findings)


def write_check(path: Path, result: CheckResult) -> None:
    """Writes the file whole or not at all."""
    write_whole(path, result.model_dump_json(indent=2) + "\n")


def read_check(path: Path) -> CheckResult:
    """Returns what `write_check` wrote; an error says in one sentence why the file is not that."""
    if not path.exists():
        raise UserError(f"{path}: no such file; write one with: dragoman check --output {path}")
    again = f"write it again with: dragoman check --output {path}"
    try:
        content = read_json(path)
    except CorruptFileError as error:
        raise UserError(f"{error}; {again}") from error
    number = content.get("format")
    if "findings" not in content or "transfers" not in content or not isinstance(number, int):
        raise UserError(f"{path}: is not the file of a check; {again}")
    if number > FORMAT:
        raise UserError(
            f"{path}: has format {number}, which is newer than the {FORMAT} of this version; "
            f"update Dragoman, or {again}"
        )
    try:
        return CheckResult.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{path}: {problems_of(error)}; {again}") from error
