import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import WIRE_BYTES, traffic_of

from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.step_variation import byte_variation_of, variation_of

CONSTANT = traffic_of()


def varied(tmp_path, parts, more=CONSTANT):
    return read(write_steps(new_run(tmp_path), parts, more=more))


def test_the_parts_share_the_variance_of_the_step(tmp_path):
    """Of two independent parts, one that varies twice as much has four times the variance."""

    def parts(rank, number):
        low, high = number % 2, number // 2 % 2
        return with_parts(forward=0.3 + 0.1 * low, communication=0.1 + 0.2 * high)

    facts = varied(tmp_path, parts)
    rows = speed_of(facts).rows[-56:]  # whole periods
    found = variation_of(facts.step_parts, rows)

    assert found.shares["network_s"] == pytest.approx(0.8)
    assert found.shares["compute_s"] == pytest.approx(0.2)
    assert found.cause == "network_s"
    assert found.with_network.value == pytest.approx(0.8**0.5)


def test_steps_that_are_alike_have_no_cause(tmp_path):
    facts = varied(tmp_path, lambda *_: with_parts())
    found = variation_of(facts.step_parts, speed_of(facts).rows)

    assert (found.scatter, found.shares, found.cause) == (0.0, {}, "")


def test_bytes_that_do_not_vary_correlate_with_nothing(tmp_path):
    facts = varied(tmp_path, lambda _, number: with_parts(forward=0.1 * (number % 5)))
    found = byte_variation_of(facts, facts.step_parts.step)

    assert (found.steps, found.scatter, found.with_bytes) == (60, 0.0, None)


def test_bytes_that_vary_correlate_with_the_steps_time(tmp_path):
    facts = varied(
        tmp_path,
        lambda _, number: with_parts(communication=0.1 * (number % 5)),
        more=lambda rank, number: traffic_of(sent=WIRE_BYTES * (1 + number % 5))(rank, number),
    )

    assert byte_variation_of(facts, facts.step_parts.step).with_bytes.value == pytest.approx(1.0)
