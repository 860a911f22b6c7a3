import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import GBIT_S, WIRE_BYTES, figure, slow_link, traffic_of
from unit.report.fake_run import started

from dragoman.diagnosis.answers import network
from dragoman.telemetry.events import SensorReading, SensorsFound


def test_a_slow_link_is_the_bottleneck_with_its_figures_and_what_would_help(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path))))

    assert (found.verdict, found.confidence) == ("network-bound", "high")
    assert figure(found, "exposed network share") == pytest.approx(2.0 / 2.935)
    assert figure(found, "host-0 sent") == pytest.approx(WIRE_BYTES / 2.935, rel=0.01)
    assert figure(found, "host-1, its port") == GBIT_S
    assert figure(found, "step with a link ten times faster") < 1.3
    assert figure(found, "step with updates twice as large") == pytest.approx(2.935 - 1.0)
    assert found.plain.startswith("Yes")


def test_a_port_that_promises_more_than_passes_is_found_out(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path), network_s=20.0, rate=12.5e6)))

    assert found.verdict == "network-bound"
    assert "although the ports announce 1 Gbit/s" in found.sentence
    assert figure(found, "rate while all wait, at most") == pytest.approx(WIRE_BYTES / 20)


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
    assert [advice.command for advice in found.advice] == ["ssh host-1 'vmstat 1 5'"]


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


def test_a_straggler_within_the_error_of_the_small_message_is_not_blamed_with_confidence(tmp_path):
    def parts(rank, number):
        late_s = 0.5 * rank
        own = {"backward": 0.6 + late_s, "communication": 0.55 - late_s, "agreement": 0.6}
        return with_parts(**own)

    found = network.answer(read(write_steps(new_run(tmp_path), parts)))

    assert (found.verdict, found.confidence) == ("straggler", "low")


def test_ranks_that_wait_because_work_does_not_divide_evenly_are_not_slow(tmp_path):
    """Four micro-batches on three ranks."""

    def parts(rank, number):
        late_s = 0.9 if rank == 2 else 0.0
        return with_parts(backward=0.6 + late_s, communication=0.95 - late_s)

    def counts(rank, number):
        tokens = 2000.0 if rank == 2 else 1000.0
        return {"counts": {"positions": tokens, "source_tokens": tokens, "target_tokens": tokens}}

    run = write_steps(new_run(tmp_path), parts, ranks=3, more=counts)
    found = network.answer(read(run))

    assert found.verdict == "straggler"
    assert "host-2" not in found.sentence + found.plain + found.advice_text
    assert "training.micro_batch_tokens=2048" in found.advice[0].command


def test_waiting_that_comes_and_goes_is_not_told_as_a_mean(tmp_path):
    def parts(rank, number):
        return with_parts(communication=4.0 if number % 3 == 0 else 0.02)

    run = write_steps(new_run(tmp_path), parts, steps=120, more=traffic_of())
    found = network.answer(read(run))

    assert found.verdict == "network-bound"
    assert figure(found, "steps with much waiting for the network") == pytest.approx(
        1 / 3, abs=0.01
    )
    assert figure(found, "median step with much waiting for the network") == pytest.approx(4.935)
    assert figure(found, "median step without much waiting for the network") == pytest.approx(0.955)
    assert figure(found, "rate while all wait, at most") == pytest.approx(WIRE_BYTES / 4.0)


def test_programs_of_others_are_named_as_the_cause(tmp_path):
    def parts(rank, number):
        return with_parts(backward=0.6 + 0.5 * rank, communication=0.55 - 0.5 * rank)

    def beside(rank, end):
        values = {"cpu/percent": 100.0, "cpu/steal_percent": 0.0, "cpu/load": float(rank)}
        own = {f"rank/{rank}/cpu_percent": 400.0 if rank == 0 else 200.0}
        readings = [(float(s), SensorReading({**values, **own})) for s in range(11, int(end))]
        return [(1.0, SensorsFound(f"host-{rank}", ["processor"], {}, cores=4)), *readings]

    found = network.answer(read(write_steps(new_run(tmp_path), parts, beside=beside)))

    assert found.verdict == "straggler"
    assert "50 % of the processors of host-1" in found.sentence
    assert found.advice[0].command.startswith("ssh host-1 'ps ")


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


@pytest.mark.parametrize("part", ["checkpoint", "rest"])
def test_a_run_that_does_not_compute_most_of_the_time_is_not_said_to(tmp_path, part):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(agreement=0.001, **{part: 2.0}))
    found = network.answer(read(run))

    assert found.verdict == "compute-bound"
    assert "computing" not in found.plain
    assert "67 %" in found.plain
