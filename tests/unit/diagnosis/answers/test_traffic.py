import pytest
from unit.diagnosis.layout_run import write_layouts
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


def test_the_same_bytes_in_each_step_explain_nothing(tmp_path):
    """Their rate is the time of a step once more, upside down, and no evidence of anything."""

    def parts(rank, number):
        return with_parts(forward=0.3 + 0.1 * (number * 7 % 5))

    run = write_steps(new_run(tmp_path), parts, more=traffic_of())
    found = traffic.answer(read(run))

    assert figure(found, "variance of the step time, computing") == pytest.approx(1.0)
    assert not [f for f in found.evidence if "per second" in f.name or "with bytes" in f.name]
    assert "the bytes are the same in each step" in found.sentence
    assert "100 % of that goes with computing" in found.sentence


def test_slow_steps_of_the_network_are_not_denied(tmp_path):
    """In the mean the network takes little; the steps that are slow are slow because of it."""

    def parts(rank, number):
        return with_parts(communication=1.0 if number % 9 == 0 else 0.02)

    facts = read(write_steps(new_run(tmp_path), parts, more=traffic_of()))
    found = traffic.answer(facts)

    assert network.answer(facts).verdict == "compute-bound"
    assert figure(found, "variance of the step time, the network") == pytest.approx(1.0)
    assert figure(found, "correlation of step time with exposed network") == pytest.approx(1.0)
    assert "goes with the network" in found.sentence


def test_bytes_that_vary_are_correlated_with_the_time(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda _, number: with_parts(communication=0.1 * (number % 5 + 1)),
        more=lambda rank, number: traffic_of(sent=WIRE_BYTES * (number % 5 + 1))(rank, number),
    )
    found = traffic.answer(read(run))

    assert figure(found, "correlation of step time with bytes per step") == pytest.approx(1.0)


def test_a_straggler_is_not_called_traffic(tmp_path):
    def parts(rank, number):
        return with_parts(forward=2.0) if rank else with_parts(communication=1.75)

    facts = read(write_steps(new_run(tmp_path), parts, more=traffic_of()))
    found = traffic.answer(facts)

    assert network.answer(facts).verdict == "straggler"
    assert "The traffic does not set the time of a step: the others wait for host-1" in (
        found.sentence
    )


def test_each_number_of_hosts_has_its_own_ring(tmp_path):
    facts = read(write_layouts(new_run(tmp_path), (2, 0.3), (4, 1.3), (3, 0.8), (1, 2.3), (2, 0.3)))
    found = traffic.answer(facts)

    assert found.verdict == "as predicted"
    assert figure(found, "sent per step") == figure(found, "predicted per step") == 2e6
    assert figure(found, "sent per step with 4 hosts") == 4e6
    assert "in a ring of 2 ranks" in found.sentence
    assert "4 MB with 4 hosts, 3 MB with 3 hosts, nothing with one worker" in found.sentence
    assert "4 hosts are slower and dearer than 2 hosts were" in found.sentence


def test_within_one_machine_nothing_has_to_pass_an_interface(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=traffic_of(sent=2e3))
    for rank in (0, 1):
        path = run.directory.events_of(1, rank)
        path.write_text(path.read_text().replace("host-1", "host-0"))
    found = traffic.answer(read(run))

    assert found.verdict == "no traffic"
    assert "less" not in found.sentence
    assert "ach node" not in found.sentence


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


def test_gradients_that_take_another_way_are_not_said_to_be_few_bytes(tmp_path):
    parts = with_parts(communication=2.0)
    run = write_steps(new_run(tmp_path), lambda *_: parts, more=traffic_of(sent=9e3))
    found = traffic.answer(read(run))

    assert found.verdict == "less than predicted"
    assert "kB" not in found.plain
    assert "sets the pace" in found.plain
    assert "as with InfiniBand" in found.sentence


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ("", "in a ring of 2 ranks it sends 2 x 1/2 of 244 MB"),
        ('mode = "bf16"', "it sends 2 x 1/2 of 122 MB, as bf16"),
        ('mode = "local"', "it sends 244 MB as fp32, once in 8 steps"),
        ('mode = "local"\nwire = "4bit"', "it sends 30.4 MB as 4bit, once in 8 steps"),
    ],
)
def test_what_is_predicted_is_told_as_the_mode_sends_it(tmp_path, settings, note):
    run = new_run(tmp_path)
    recipe = run.directory.config.read_text()
    run.directory.config.write_text(f"{recipe}\n[sync]\n{settings}\n")
    found = traffic.answer(read(write_steps(run, lambda *_: with_parts(), more=traffic_of())))

    (predicted,) = [each for each in found.evidence if each.name == "predicted per step"]
    assert predicted.note == note
