import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import WIRE_BYTES, figure, slow_link, traffic_of
from unit.report.fake_run import started

from dragoman.diagnosis.answers import network, traffic


def test_unknown_network_time_is_neither_blamed_nor_acquitted(tmp_path):
    """Where nobody has timed the network, nothing can be said about what makes steps long."""
    run = new_run(tmp_path)
    run.directory.config.write_text(run.directory.config.read_text() + 'sharding = "full"\n')

    def parts(rank, number):
        own = with_parts(forward=0.3 + 0.1 * (number * 7 % 5))
        return {name: s for name, s in own.items() if name != "communication"}

    found = traffic.answer(read(write_steps(run, parts, more=traffic_of())))

    assert "It is not the traffic" not in found.sentence
    assert "How much of a step the traffic takes is not known" in found.sentence


@pytest.mark.parametrize(
    ("sent", "verdict"),
    [
        (1.01 * WIRE_BYTES, "as predicted"),
        (1.7 * WIRE_BYTES, "more than predicted"),
        (0.5 * WIRE_BYTES, "less than predicted"),
    ],
)
def test_counted_bytes_are_compared_with_predicted_ones(tmp_path, sent, verdict):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=traffic_of(sent=sent))
    found = traffic.answer(read(run))

    assert found.verdict == verdict
    assert figure(found, "sent per step") == sent


def test_small_messages_are_no_excess_over_a_small_models_gradients(tmp_path):
    run = write_steps(
        new_run(tmp_path), lambda *_: with_parts(), more=traffic_of(sent=150e3, predicted=100e3)
    )

    assert traffic.answer(read(run)).verdict == "as predicted"


def test_the_same_bytes_in_longer_steps_are_less_traffic_a_second(tmp_path):
    def parts(rank, number):
        return with_parts(forward=0.3 + 0.1 * (number * 7 % 5))

    run = write_steps(new_run(tmp_path), parts, more=traffic_of())
    found = traffic.answer(read(run))
    rate = next(f for f in found.evidence if "traffic per second" in f.name)

    assert rate.value < -0.95
    assert rate.low <= rate.value <= rate.high
    assert "a longer step means less traffic per second" in found.sentence


def test_bytes_that_were_not_counted_are_not_known_but_predicted(tmp_path):
    found = traffic.answer(read(write_steps(new_run(tmp_path), lambda *_: with_parts())))

    assert found.verdict == "not known"
    assert figure(found, "predicted per step") == 4 * 60_880_896  # 2 x 1/2 of the gradients


def test_bytes_without_a_prediction_are_compared_with_nothing(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda *_: with_parts(),
        more=lambda *_: {"traffic_bytes": {"sent": WIRE_BYTES, "received": WIRE_BYTES}},
    )
    found = traffic.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert figure(found, "sent per step") == WIRE_BYTES


def test_where_the_way_takes_the_time_the_bytes_are_not_blamed(tmp_path):
    run = slow_link(
        new_run(tmp_path), rate=1e6, sent=1e6, rest_s=lambda number: 0.5 + 0.01 * (number % 7)
    )
    facts = read(run)
    found = traffic.answer(facts)

    assert network.answer(facts).verdict == "latency-bound"
    assert "latency of the messages sets the time and not their bytes" in found.sentence
    assert "the bytes alone take" not in found.sentence


def test_a_run_without_steps_is_not_known(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = traffic.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence


def test_one_worker_has_no_traffic(tmp_path):
    facts = read(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=1))

    assert traffic.answer(facts).verdict == "no traffic"
