"""Opens the exporters that the config asks for: each sees the events that the files hold."""

import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from dragoman.config import Config
from dragoman.rundir import RunDir
from dragoman.telemetry.export.background import BackgroundExporter, Service
from dragoman.telemetry.export.mlflow import MlflowRun
from dragoman.telemetry.export.prometheus import prometheus_endpoint
from dragoman.telemetry.export.tensorboard import tensorboard_exporter
from dragoman.telemetry.export.wandb import WandbRun
from dragoman.telemetry.record.writer import Exporter

logger = logging.getLogger(__name__)


@contextmanager
def open_exporters(config: Config, run: RunDir, host: str, leads: bool) -> Iterator[list[Exporter]]:
    """Yields exporters for one rank of each host, that of local rank 0; `leads`: it is rank 0.

    The events' writer must be closed before the context ends.
    """
    settings = config.telemetry
    with ExitStack() as at_end:
        exporters: list[Exporter] = []
        if settings.tensorboard:
            # TensorBoard shows a folder of its own as a run of its own, beside the first.
            folder = run.tensorboard if leads else run.tensorboard / host
            if files := tensorboard_exporter(folder, host, of_rank_only=not leads):
                at_end.callback(files.close)
                exporters.append(files)
        port = settings.prometheus_port
        if port and (endpoint := prometheus_endpoint(port, config.name, host)):
            at_end.callback(endpoint.close)
            exporters.append(endpoint)
        services: dict[str, Callable[[], Service]] = {}
        if leads and settings.mlflow:
            services["mlflow"] = lambda: MlflowRun(config, run, host)
        if leads and settings.wandb != "off":
            services["wandb"] = lambda: WandbRun(config, run, host)
        for package, open_service in services.items():
            if importlib.util.find_spec(package) is None:
                logger.warning(
                    f"telemetry.{package} is set, but it is not installed; install it with: "
                    f"pip install dragoman[{package}]"
                )
                continue
            exporter = BackgroundExporter(package, open_service)
            at_end.callback(exporter.close)
            exporters.append(exporter)
        yield exporters
