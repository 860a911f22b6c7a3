"""Whether a check belongs to a plan, and a check of the hosts themselves."""

from collections.abc import Callable, Sequence
from pathlib import Path

import dragoman
from dragoman.check.result import CheckResult
from dragoman.check.workload import workload_hash
from dragoman.cluster.hosts import load_cluster
from dragoman.config import Config
from dragoman.errors import UserError
from dragoman.model.size import count_parameters


def ensure_fits(
    path: Path, result: CheckResult, config: Config, vocabulary: int, hosts: Sequence[str]
) -> None:
    """Refuses a check of another version, model or cluster; without `hosts`, of any cluster."""
    if result.dragoman != dragoman.__version__:
        raise UserError(
            f"{path}: was written by dragoman {result.dragoman}, and this is "
            f"{dragoman.__version__}; check again with this version"
        )
    parameters = count_parameters(config.model, vocabulary)
    if result.parameters is not None and result.parameters != parameters:
        raise UserError(
            f"{path}: was made for {result.recipe or 'a model'} with {result.parameters:,} "
            f"parameters, and this recipe has {parameters:,}; check again with this recipe"
        )
    if result.workload_hash not in (None, workload_hash(config, vocabulary)):
        raise UserError(
            f"{path}: its steps were those of {result.recipe or 'another recipe'} with other "
            "settings of model, optimizer or batches; check again with this recipe"
        )
    checked = [host.name for host in result.hosts]
    if hosts and [*hosts] != checked:
        raise UserError(
            f"{path}: is a check of {', '.join(checked)}, and --hosts names {', '.join(hosts)}; "
            "check these hosts, or leave --hosts out"
        )


def check_hosts(
    hosts: str, config: Config, tell: Callable[[str], None] = lambda text: None
) -> CheckResult:
    """Measures the hosts with the run's own recipe."""
    # They bring ssh along.
    from dragoman.check.check import check_cluster  # noqa: PLC0415
    from dragoman.check.rehearsal import rehearse_on  # noqa: PLC0415

    return check_cluster(load_cluster(hosts), config, rehearse_on, tell=tell)
