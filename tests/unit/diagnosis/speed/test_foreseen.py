import math

import pytest
from unit.diagnosis.foreseen_run import GBIT_S, HOSTS, forecast, with_forecast
from unit.diagnosis.ring_run import CAP, ring
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure

from dragoman.diagnosis.answers import duration, network, step_time, traffic
from dragoman.diagnosis.speed.capped import Cap
from dragoman.diagnosis.speed.foreseen import foreseen_of, slower_link


@pytest.fixture
def steady(tmp_path):
    """About 0.985 s a step."""
    return lambda *events: read(
        write_steps(
            new_run(tmp_path),
            lambda rank, number: with_parts(),
            beside=lambda rank, end: [(1.0, event) for event in events if rank == 0],
        )
    )


def test_a_forecast_is_read_back_and_set_beside_the_mean_step(steady):
    run = steady(forecast(ranks=2))
    foreseen = foreseen_of(run)
    assert foreseen.forecast == forecast(ranks=2)
    assert foreseen.steps == 59
    assert foreseen.step_s == pytest.approx(0.985, rel=0.01)
    assert not foreseen.is_slower
    assert foreseen_of(with_forecast(run, forecast(0.5, ranks=2))).is_slower


def test_a_run_without_a_forecast_says_nothing_of_it(steady):
    run = steady()
    assert foreseen_of(run) is None
    for answer in (step_time, duration, network, traffic):
        finding = answer.answer(run)
        assert "forecast" not in finding.sentence
        assert not [f for f in finding.evidence if f.name.startswith("forecast")]


def test_answers_have_the_forecast_beside_what_happened(steady):
    run = steady(forecast(ranks=2))
    (found,) = [f for f in step_time.answer(run).evidence if f.name == "forecast step"]
    assert (found.value, found.low, found.high) == (1.0, 0.9, 1.1)
    assert "1 s (900 ms to 1.1 s) were forecast" in step_time.answer(run).sentence
    assert figure(duration.answer(run), "forecast duration") == 7200.0
    assert figure(duration.answer(run), "forecast cost") == 12.0
    assert figure(network.answer(run), "forecast exposed network") == 0.05


@pytest.mark.parametrize(
    ("cap", "where", "host", "before"),
    [
        (Cap(CAP, ["host-1"], is_sure=True), "host-1", "host-1", GBIT_S),
        (Cap(CAP, ["host-1", "host-2"], is_sure=True), "host-1 and host-2", "", GBIT_S),
        (Cap(CAP, hop=("host-0", "host-1")), "from host-0 to host-1", "", GBIT_S),
        (Cap(CAP, reason="two hosts"), "the network", "", GBIT_S),
        (Cap(CAP, ["host-1"], is_sure=False), "the network", "", GBIT_S),
    ],
)
def test_what_has_become_slower_has_a_host_only_where_it_is_known(cap, where, host, before):
    found = slower_link(cap, forecast())
    assert where in found.where
    assert (found.host, found.now, found.before) == (host, CAP, before)


@pytest.mark.parametrize(
    "cap",
    [
        None,
        Cap(0.9 * GBIT_S, ["host-1"], is_sure=True),
        Cap(CAP, ["host-1"], is_sure=True, is_measured=False),
        Cap(CAP, ["a host that was not measured"], is_sure=True),
    ],
)
def test_a_link_that_is_as_it_was_or_is_not_known_has_not_become_slower(cap):
    assert slower_link(cap, forecast()) is None


def test_a_link_that_was_slow_before_is_not_called_slower():
    made = forecast(rate=CAP)
    assert slower_link(Cap(CAP, ["host-1"], is_sure=True), made) is None


def test_the_report_names_the_host_whose_link_has_become_slower(tmp_path):
    run = with_forecast(ring(tmp_path), forecast())
    found = network.answer(run)
    assert f"{HOSTS[1]} has become slower" in found.sentence
    assert figure(found, "rate measured before the start") == GBIT_S
    assert figure(found, "rate of it in the run") == pytest.approx(CAP, rel=0.05)


def test_the_report_does_not_where_it_was_as_slow_before(tmp_path):
    run = with_forecast(ring(tmp_path), forecast(rate=CAP))
    assert "has become slower" not in network.answer(run).sentence


def test_no_steps_leave_the_forecast_alone(tmp_path):
    run = read(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=2, steps=0))
    assert math.isnan(foreseen_of(with_forecast(run, forecast(ranks=2))).step_s)
