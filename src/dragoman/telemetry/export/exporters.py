"""Opens the exporters that the config asks for: each sees the events that the files hold."""

import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from dragoman.config import Config
from dragoman.installation import install_command
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Stamped
from dragoman.telemetry.export.background import BackgroundExporter, first_line_of
from dragoman.telemetry.export.mlflow import MlflowRun
from dragoman.telemetry.export.prometheus import PrometheusEndpoint
from dragoman.telemetry.export.tensorboard import TensorBoardFiles
from dragoman.telemetry.export.wandb import WandbRun
from dragoman.telemetry.record.writer import Exporter

logger = logging.getLogger(__name__)

_PACKAGES = {"prometheus": "prometheus_client"}
"""Tool -> its package, where that has another name."""


class ClosingExporter(Protocol):
    def __call__(self, stamped: Stamped) -> None: ...
    def close(self) -> None: ...


@contextmanager
def open_exporters(config: Config, run: RunDir, host: str, leads: bool) -> Iterator[list[Exporter]]:
    """Yields exporters for one rank of each host, that of local rank 0; `leads`: it is rank 0.

    What cannot be opened is a warning. The events' writer must be closed before the context ends.
    """
    settings = config.telemetry
    by_setting: dict[str, Callable[[], ClosingExporter]] = {}
    if settings.tensorboard:
        # TensorBoard shows a folder of its own as a run of its own, beside the first.
        folder = run.tensorboard if leads else run.tensorboard / host
        by_setting["tensorboard"] = lambda: TensorBoardFiles(folder, host, of_rank_only=not leads)
    if port := settings.prometheus_port:
        by_setting["prometheus_port"] = lambda: PrometheusEndpoint(port, config.name, host)
    if leads and settings.mlflow:
        by_setting["mlflow"] = lambda: BackgroundExporter(
            "mlflow", lambda: MlflowRun(config, run, host)
        )
    if leads and settings.wandb != "off":
        by_setting["wandb"] = lambda: BackgroundExporter(
            "wandb", lambda: WandbRun(config, run, host)
        )
    with ExitStack() as at_end:
        exporters: list[Exporter] = []
        for setting, open_exporter in by_setting.items():
            tool = setting.removesuffix("_port")
            if importlib.util.find_spec(_PACKAGES.get(tool, tool)) is None:
                logger.warning(
                    f"telemetry.{setting} is set, but {tool} is not installed; install it with: "
                    f"{install_command(tool)}"
                )
                continue
            try:
                exporter = open_exporter()
            except Exception as error:  # whatever a tool does, the run goes on
                value = getattr(settings, setting)
                logger.warning(
                    f"telemetry.{setting} = {value} cannot be used: {first_line_of(error)}"
                )
                continue
            at_end.callback(exporter.close)
            exporters.append(exporter)
        yield exporters
