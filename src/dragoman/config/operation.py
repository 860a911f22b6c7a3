"""What surrounds the training of a run: what is kept, recorded, polled, paid and announced."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Strict

from dragoman.config.bounds import Hours, Price, Seconds, SecondsOrZero, Steps, above, between
from dragoman.config.section import Section
from dragoman.config.texts import Text, without_password, written_as


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
        without_password(
            "put credentials into the environment, such as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        ),
        written_as(
            r"((s3|gs|az|file)://[^\s?#]+)?",
            "an address such as s3://bucket/runs, gs://..., az://... or file:///..., or empty",
        ),
    ] = ""
    """Upload every checkpoint that is kept, and the run's records, to this address and the name of
    the run: a new machine goes on from there. Empty: nowhere."""
    mirror_bytes_per_s: Annotated[int, between(0, 1_000_000_000_000)] = 10_000_000
    """Most bytes per second of a host's uploads to the mirror, on average; 0: no limit."""
    mirror_wait_s: SecondsOrZero = 600.0
    """Most seconds to wait for the last upload at the end of an attempt."""


class TelemetrySettings(Section):
    tensorboard: bool = True
    """Also write metrics for TensorBoard, if it is installed."""
    log_every_s: Seconds = 5.0
    """Seconds between two progress lines when the output is not a terminal."""
    sensors_every_s: SecondsOrZero = 1.0
    """Seconds between two readings of each host's sensors; 0: never."""
    prometheus_port: Annotated[int, between(0, 65_535)] = 0
    """Serve the latest metrics to Prometheus on this port of 127.0.0.1, on each host; 0: off."""
    mlflow: Annotated[
        Text, without_password("set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead")
    ] = ""
    """Send metrics to MLflow: address of its server, or a folder (file:mlruns); empty: off."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases: offline writes files to the run for `wandb sync`, online sends at once."""


class PreemptionSettings(Section):
    cloud: Literal["none", "aws", "google"] = "none"
    """Cloud whose metadata service every host polls for preemption notices; after one, the run
    saves and stops. none: SIGTERM is the only notice."""
    metadata_address: Annotated[
        Text,
        written_as(
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
