"""Looks ahead before a run starts on other hosts, and compares it with that while it goes on.

A short check measures links, steps and sums; the forecast made of it is shown, asked about where
the run would wait or cost too much, and given to the workers, who record it.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.check.check import check_cluster
from dragoman.check.rehearsal import rehearse
from dragoman.check.result import CheckResult, read_check, write_check
from dragoman.check.workload import workload_hash
from dragoman.cluster.preflight import Ready
from dragoman.cluster.supervise import Agents
from dragoman.config import Config
from dragoman.diagnosis.phrasing import money, seconds
from dragoman.diagnosis.speed.link_watch import LinkWatch
from dragoman.errors import NotStartedError, RunError, UserError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.telemetry.events import (
    AttemptStarted,
    ForecastMade,
    SensorReading,
    Stamped,
    StepDone,
    from_line,
    kind_of,
    to_line,
)
from dragoman.training.manifest import FORECAST

if TYPE_CHECKING:
    from dragoman.plan.content import Plan

logger = logging.getLogger(__name__)

BOX_S = 1.5
"""About how long steps, sums, and whole steps may each take, at the start of a run."""
HOLDS_S = 86_400.0
"""For so long a check serves the attempts of a run that follow on the same hosts."""
WORTH_ASKING_S = 600.0
"""Of waiting in a whole run: below, nobody is asked about it."""
_RECORD = re.compile(r"events/attempt-(\d+)-rank-(\d+)\.jsonl")
_WATCHED = (AttemptStarted, SensorReading, StepDone)

IsStopping = Callable[[], bool]
Confirm = Callable[[str, IsStopping], bool]
"""Is given what is wrong with a run, in words; returns whether it is to start all the same."""


class RunOutlook:
    """Is the `Outlook` of a run."""

    def __init__(self, config: Config, run: RunDir, workers: int | None, confirm: Confirm) -> None:
        self._config, self._run, self._workers = config, run, workers
        self._confirm = confirm
        self._forecast: ForecastMade | None = None
        self._interfaces: dict[str, str] = {}
        self._watch: LinkWatch | None = None
        self._attempt = 0
        self._lock = threading.Lock()

    def before_start(
        self, ready: Ready, agents: Agents, is_stopping: IsStopping
    ) -> Mapping[str, str]:
        """Checks, forecasts, and asks where there is something to ask about."""
        from dragoman.plan.plan import plan_from_check  # noqa: PLC0415 - it is large

        try:
            result = self._recent(ready) or self._measured(ready, agents, is_stopping)
        except RunError as error:
            if is_stopping():
                raise
            logger.warning(f"there is no forecast: {error}")
            return {}
        try:
            plan = plan_from_check(self._config, result)
        except Exception as error:  # whatever was measured, the run starts
            logger.warning(f"there is no forecast ({error!r}); the run starts without one")
            return {}
        for finding in result.findings:
            if finding.verdict != "good":
                logger.warning(finding.sentence)
        for line in plan.summary_lines():
            logger.info(line)
        if (concern := concern_about(plan)) and not self._confirm(concern, is_stopping):
            raise NotStartedError("not started, as you wished; nothing was changed on the hosts")
        self._forecast = forecast_event(self._config, plan, result)
        self._interfaces = {name: found.name for name, found in ready.interfaces.items()}
        now = time.time()
        return {FORECAST: to_line(Stamped(now, time.monotonic(), self._forecast))}

    def record_came(self, host: str, name: str, text: str) -> None:
        """Logs a line when the run is no longer as it was forecast."""
        place = _RECORD.fullmatch(name)
        if place is None or self._forecast is None:
            return
        attempt, rank = int(place[1]), int(place[2])
        with self._lock:
            try:
                for line in text.splitlines():
                    if kind_of(line.encode()) in _WATCHED and (stamped := from_line(line)):
                        self._take(attempt, rank, stamped)
            except Exception as error:  # whatever a record holds, the run goes on
                self._forecast = None
                logger.warning(f"the run is no longer compared with its forecast ({error!r})")

    def _take(self, attempt: int, rank: int, stamped: Stamped) -> None:
        assert self._forecast
        if attempt > self._attempt:
            self._attempt = attempt
            self._watch = LinkWatch(self._forecast, self._interfaces)
        event = stamped.event
        if isinstance(event, AttemptStarted) and event.ranks != self._forecast.ranks:
            self._watch = None  # it goes on with other hosts
        if self._watch and attempt == self._attempt and (line := self._watch.take(rank, stamped)):
            logger.info(line)

    def _recent(self, ready: Ready) -> CheckResult | None:
        """Returns the check of an earlier attempt, if it is new enough and of the same hosts."""
        if not self._run.check.exists():
            return None
        try:
            result = read_check(self._run.check)
        except UserError:
            return None
        hosts = {host.name: (host.address, host.workers) for host in result.hosts}
        present = {
            name: (ready.interfaces[name].address, workers)
            for name, workers in ready.workers.items()
        }
        is_same = hosts == present and result.dragoman == __version__
        is_same = is_same and result.workload_hash == workload_hash(self._config, self._pieces())
        age_s = time.time() - datetime.fromisoformat(result.checked_at).timestamp()
        if not is_same or not 0 <= age_s < HOLDS_S or not result.computing:
            return None
        logger.info(f"the hosts were checked {seconds(age_s)} ago, and the forecast rests on that")
        return result

    def _measured(self, ready: Ready, agents: Agents, is_stopping: IsStopping) -> CheckResult:
        config, cluster = self._config, ready.cluster
        begun = time.monotonic()
        has_data = (config.prepared_folder / PASSPORT_NAME).exists()
        is_missing = not has_data and any(facts.data is None for facts in ready.facts.values())
        if is_missing and not config.data.prepared_from:
            prepare(config)  # steps have its shapes; it would be made in a moment anyway
        logger.info("measuring links and a few steps; --skip-check leaves that out")
        checked = check_cluster(
            cluster, config, short=True, workers=self._workers, is_stopping=is_stopping
        )
        collective, computing = rehearse(cluster, ready, config, is_stopping, BOX_S, agents)
        result = checked.model_copy(
            update={
                "collective": collective,
                "computing": computing,
                "seconds": time.monotonic() - begun,
            }
        )
        write_check(self._run.check, result)
        return result

    def _pieces(self) -> int:
        folder = self._config.prepared_folder
        if (folder / PASSPORT_NAME).exists():
            return PreparedData.open(folder).passport.vocabulary
        return self._config.tokenizer.vocabulary


def concern_about(plan: "Plan") -> str:
    """Returns why somebody should be asked before the run starts; empty: there is no reason."""
    own, reasons = plan.own, []
    waits_s = own.exposed_s.value + own.slowed_s.value
    is_long = plan.steps is None or plan.steps * waits_s >= WORTH_ASKING_S
    if plan.waits_longer_than_it_computes and is_long:
        reasons.append(
            f"each step would wait {seconds(waits_s)} for the network and compute for "
            f"{seconds(own.compute_s.value)}"
        )
    if plan.exceeds_budget and own.cost:
        cost, budget = (money(each, plan.currency) for each in (own.cost.value, plan.budget))
        reasons.append(f"the run would cost {cost}, more than cost.budget = {budget}")
    return ", and ".join(reasons)


def forecast_event(config: Config, plan: "Plan", result: CheckResult) -> ForecastMade:
    own = plan.own
    prices = {host.name: host.price_per_hour or config.cost.host_per_hour for host in result.hosts}
    sent: dict[str, float] = {}
    received: dict[str, float] = {}
    for transfer in result.transfers:
        rate = max(transfer.one_flow_bytes_per_s, transfer.several_flows_bytes_per_s)
        sent[transfer.sender] = max(rate, sent.get(transfer.sender, 0.0))
        received[transfer.receiver] = max(rate, received.get(transfer.receiver, 0.0))
    return ForecastMade(
        ranks=sum(host.workers for host in result.hosts),
        hosts=[host.name for host in result.hosts],
        checked_at=datetime.fromisoformat(result.checked_at).timestamp(),
        step_s=own.step_s.value,
        step_low_s=own.step_s.low,
        step_high_s=own.step_s.high,
        compute_s=own.compute_s.value,
        exposed_s=own.exposed_s.value + own.slowed_s.value,
        bytes_per_step=own.bytes_per_step,
        hours=own.hours.value if own.hours else None,
        cost=own.cost.value if own.cost else None,
        currency=plan.currency,
        host_prices={name: price for name, price in prices.items() if price},
        sent_bytes_per_s=sent,
        received_bytes_per_s=received,
    )
