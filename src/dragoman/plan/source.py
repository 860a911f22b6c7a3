"""Chooses what a plan is made from: hosts, a check's file, or an assumption in words."""

import logging
from collections.abc import Callable
from pathlib import Path

from dragoman.check.result import CheckResult, read_check
from dragoman.cluster.hosts import load_cluster
from dragoman.config import Config
from dragoman.errors import UserError
from dragoman.plan.assumption import EXAMPLE
from dragoman.plan.checking import check_hosts, ensure_fits
from dragoman.plan.content import Plan
from dragoman.plan.data import data_of
from dragoman.plan.plan import plan_from_assumption, plan_from_check

logger = logging.getLogger(__name__)


def plan_for(
    config: Config,
    hosts: str = "",
    check: Path | None = None,
    assume: str = "",
    tell: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Exactly one source is needed; a check's file may be held against a host list.

    What the check has found unfit is logged: the forecast holds for hosts as they were measured.
    `tell` gets a few words about what is being measured.
    """
    if assume and (hosts or check):
        raise UserError("--assume is instead of --hosts and --check; leave one of them out")
    if assume:
        return plan_from_assumption(config, assume)
    names = [host.name for host in load_cluster(hosts).hosts] if hosts else []
    if check:
        result = read_check(check)
        vocabulary = data_of(config, 1).vocabulary
        ensure_fits(check, result, config, vocabulary, names)
        return _planned(config, result)
    if hosts:
        return _planned(config, check_hosts(hosts, config, tell))
    raise UserError(
        "say where the run will be: --hosts hosts.toml to measure hosts, --check FILE for those "
        f"measured before, or --assume {EXAMPLE}"
    )


def _planned(config: Config, result: CheckResult) -> Plan:
    for finding in result.findings:
        if finding.verdict == "unfit":
            logger.warning(f"the check found {finding.subject} unfit: {finding.sentence}")
    return plan_from_check(config, result)
