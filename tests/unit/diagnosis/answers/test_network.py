import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import GBIT_S, WIRE_BYTES, figure, slow_link, traffic_of
from unit.report.fake_run import started

from dragoman.diagnosis.answers import network


def test_a_slow_link_is_the_bottleneck_with_its_figures_and_what_would_help(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path))))

    assert (found.verdict, found.confidence) == ("network-bound", "high")
    assert figure(found, "exposed network share") == pytest.approx(2.0 / 2.935)
    assert figure(found, "host-0 sent") == pytest.approx(WIRE_BYTES / 2.935, rel=0.01)
    assert figure(found, "host-1, its port") == GBIT_S
    assert figure(found, "step with bf16 on the wire") < 2.0
    assert figure(found, "step with a link ten times faster") < 1.3
    assert "bf16 on the wire would save" in found.advice


def test_a_port_that_promises_more_than_passes_is_found_out(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path), network_s=20.0, rate=12.5e6)))

    assert found.verdict == "network-bound"
    assert "eth0 of host-0 announces 1 Gbit/s" in found.sentence
    assert "something on the way, or another host of the ring, is slower" in found.sentence


def test_a_link_that_slows_down_is_told_since_when(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path), since=31)))

    assert found.verdict == "network-bound"
    assert figure(found, "since step") == 31


def test_a_straggler_is_named_by_its_host(tmp_path):
    def parts(rank, number):
        return with_parts(backward=0.6 + 0.5 * rank, communication=0.55 - 0.5 * rank)

    found = network.answer(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "straggler"
    assert "host-1" in found.sentence
    assert figure(found, "waiting for stragglers") == pytest.approx(0.5)


def test_a_host_that_is_late_because_of_its_data_is_not_said_to_be_throttled(tmp_path):
    def parts(rank, number):
        return with_parts(data=0.01 + 0.5 * rank, communication=0.55 - 0.5 * rank)

    found = network.answer(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "straggler"
    assert "host-1 is slower than the others, because it waits for its data" in found.sentence
    assert "read the data for host-1" in found.advice
    assert "throttled" not in found.advice


def mixed(tmp_path, network_s, late_s):
    def parts(rank, number):
        own = {"backward": 0.6 + late_s * rank, "communication": network_s + late_s * (1 - rank)}
        return with_parts(**own)

    return network.answer(read(write_steps(new_run(tmp_path), parts)))


def test_what_holds_a_run_back_as_well_is_told_and_lowers_the_confidence(tmp_path):
    found = mixed(tmp_path, network_s=1.0, late_s=0.9)

    assert (found.verdict, found.confidence) == ("network-bound", "medium")
    assert "In addition, waiting for host-1 takes 900 ms" in found.sentence


def test_a_network_that_comes_second_is_not_acquitted(tmp_path):
    found = mixed(tmp_path, network_s=0.9, late_s=1.4)

    assert (found.verdict, found.confidence) == ("straggler", "high")
    assert found.sentence.startswith("The network is not what holds the run back most: host-1")
    assert "In addition, the network takes 900 ms" in found.sentence


def test_a_small_second_hindrance_is_not_worth_a_word(tmp_path):
    found = mixed(tmp_path, network_s=0.05, late_s=1.4)

    assert found.sentence.startswith("The network is not the bottleneck: host-1")
    assert "In addition" not in found.sentence


def test_the_host_with_the_slowest_port_is_named(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path), ports=(10 * GBIT_S, GBIT_S))))

    assert "eth0 of host-1 announces 1 Gbit/s, the others 10 Gbit/s or more" in found.sentence
    assert "something on the way" not in found.sentence


def test_a_link_that_comes_and_goes_is_told_to(tmp_path):
    def parts(rank, number):
        return with_parts(communication=2.0 if (number - 1) // 20 % 2 else 0.02)

    run = write_steps(new_run(tmp_path), parts, steps=100, more=traffic_of())
    found = network.answer(read(run))

    assert found.verdict == "network-bound"
    assert (figure(found, "since step"), figure(found, "until step")) == (21, 80)
    assert "2 times, and not in between;" in found.sentence


def test_one_worker_has_no_network(tmp_path):
    found = network.answer(read(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=1)))

    assert found.verdict == "compute-bound"
    assert figure(found, "exposed network") == 0.0


def test_sharded_states_leave_the_networks_part_unknown(tmp_path):
    run = new_run(tmp_path)
    run.directory.config.write_text(run.directory.config.read_text() + 'sharding = "full"\n')
    parts = {name: s for name, s in with_parts().items() if name != "communication"}
    found = network.answer(read(write_steps(run, lambda *_: parts)))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "sharded" in found.sentence


def test_traffic_within_one_host_is_not_compared_with_its_port(tmp_path):
    run = slow_link(new_run(tmp_path), network_s=0.05, ports=(25 * GBIT_S, 25 * GBIT_S))
    path = run.directory.events_of(1, 1)
    path.write_text(path.read_text().replace("host-1", "host-0"))
    found = network.answer(read(run))

    assert "within the host" in found.sentence
    assert not [f.name for f in found.evidence if "port" in f.name]


def test_few_steps_are_not_trusted(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), steps=5)

    assert network.answer(read(run)).confidence == "low"


def test_a_run_without_steps_is_not_known(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = network.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence
