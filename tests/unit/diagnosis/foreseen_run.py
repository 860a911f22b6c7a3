"""A forecast for runs of tests: a second a step on three hosts, whose links passed 1 Gbit/s."""

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.telemetry.events import ForecastMade

HOSTS = ["host-0", "host-1", "host-2"]
GBIT_S = 1.25e8


def forecast(step_s: float = 1.0, ranks: int = 3, rate: float = GBIT_S) -> ForecastMade:
    return ForecastMade(
        ranks=ranks,
        hosts=HOSTS[:ranks],
        checked_at=1700000000.0,
        step_s=step_s,
        step_low_s=0.9 * step_s,
        step_high_s=1.1 * step_s,
        compute_s=0.9 * step_s,
        exposed_s=0.05 * step_s,
        bytes_per_step=1e8,
        hours=2.0,
        cost=12.0,
        currency="USD",
        sent_bytes_per_s=dict.fromkeys(HOSTS[:ranks], rate),
        received_bytes_per_s=dict.fromkeys(HOSTS[:ranks], rate),
    )


def with_forecast(run: RunFacts, made: ForecastMade) -> RunFacts:
    vars(run)["forecasts"] = {1: made}
    return run
