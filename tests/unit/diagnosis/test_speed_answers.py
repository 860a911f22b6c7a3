"""The five answers about speed, each on a small run whose truth is known."""

import dataclasses
import math

import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import WALL_AT, evaluated, started, step

from dragoman.diagnosis.answers import devices, duration, network, step_time, traffic
from dragoman.diagnosis.speed.bottleneck import Shares
from dragoman.diagnosis.speed.utilization import Use, answer_in_words, verdict_of
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    DeviceFound,
    SensorReading,
    SensorsFound,
)

WIRE_BYTES = 255e6


def figure(finding, name):
    return next(figure.value for figure in finding.evidence if figure.name == name)


def traffic_of(sent=WIRE_BYTES, predicted=WIRE_BYTES):
    bytes_ = {"sent": sent, "received": sent, "predicted": predicted}
    return lambda rank, number: {"traffic_bytes": bytes_}


def slow_link(
    run,
    network_s=2.0,
    since=1,
    port="1000 Mbit/s",
    rate=125e6,
    sent=WIRE_BYTES,
    rest_s=lambda number: 0.005,
):
    """Sensors a second apart that see the link at `rate` while it works."""

    def beside(rank, end):
        host = f"host-{rank}"
        yield 1.0, SensorsFound(host, ["network"], {}, {"network/eth0": port})
        for second in range(2, int(end)):
            counted = rate * second
            names = ("sent_bytes_total", "received_bytes_total")
            yield float(second), SensorReading({f"network/eth0/{name}": counted for name in names})

    def parts(rank, number):
        return with_parts(communication=network_s if number >= since else 0.02, rest=rest_s(number))

    more = traffic_of(sent, predicted=sent)
    return write_steps(run, parts, more=more, beside=lambda r, e: list(beside(r, e)))


def test_a_slow_link_is_the_bottleneck_with_its_figures_and_what_would_help(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path))))

    assert (found.verdict, found.confidence) == ("network-bound", "high")
    assert figure(found, "exposed network share") == pytest.approx(2.0 / 2.935)
    assert figure(found, "host-0 sent") == pytest.approx(WIRE_BYTES / 2.935, rel=0.01)
    assert figure(found, "host-1, its port") == 125e6
    assert figure(found, "step with bf16 on the wire") < 2.0
    assert figure(found, "step with a link ten times faster") < 1.3
    assert "bf16 on the wire would save" in found.advice


def test_a_port_that_promises_more_than_passes_is_found_out(tmp_path):
    found = network.answer(
        read(slow_link(new_run(tmp_path), network_s=20.0, port="1000 Mbit/s", rate=12.5e6))
    )

    assert found.verdict == "network-bound"
    assert "eth0 of host-0 says 1 Gbit/s" in found.sentence
    assert "something on the way, or another host of the ring, is slower" in found.sentence


def test_a_link_that_slows_down_is_told_since_when(tmp_path):
    found = network.answer(read(slow_link(new_run(tmp_path), since=31)))

    assert found.verdict == "network-bound"
    assert figure(found, "since step") == 31
    assert "since step 31" in found.sentence


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
    assert "Beside that waiting for host-1 takes 900 ms" in found.sentence


def test_a_network_that_comes_second_is_not_acquitted(tmp_path):
    found = mixed(tmp_path, network_s=0.9, late_s=1.4)

    assert (found.verdict, found.confidence) == ("straggler", "high")
    assert found.sentence.startswith("The network is not what holds the run back most: host-1")
    assert "Beside that the network takes 900 ms" in found.sentence


def test_a_small_second_hindrance_is_not_worth_a_word(tmp_path):
    found = mixed(tmp_path, network_s=0.05, late_s=1.4)

    assert found.sentence.startswith("The network is not the bottleneck: host-1")
    assert "Beside that" not in found.sentence


def test_the_host_with_the_slowest_port_is_named(tmp_path):
    run = slow_link(new_run(tmp_path))
    path = run.directory.events_of(1, 0)
    path.write_text(path.read_text().replace("1000 Mbit/s", "10000 Mbit/s"))
    found = network.answer(read(run))

    assert "eth0 of host-1 says 1 Gbit/s, the others 10 Gbit/s or more" in found.sentence
    assert "something on the way" not in found.sentence


def test_a_link_that_comes_and_goes_is_told_to(tmp_path):
    def parts(rank, number):
        return with_parts(communication=2.0 if (number - 1) // 20 % 2 else 0.02)

    run = write_steps(new_run(tmp_path), parts, steps=100, more=traffic_of())
    found = network.answer(read(run))

    assert found.verdict == "network-bound"
    assert "That holds from step 21 to step 80, 2 times, and not in between;" in found.sentence


def test_a_link_that_has_recovered_is_told_to_be_over(tmp_path):
    def parts(rank, number):
        return with_parts(communication=2.0 if number <= 30 else 0.02)

    found = network.answer(read(write_steps(new_run(tmp_path), parts, more=traffic_of())))

    assert found.verdict == "network-bound"
    assert "That holds until step 30" in found.sentence
    assert found.advice.startswith("It has been over since step 31;")


@pytest.mark.parametrize(
    ("sent", "offers_halving", "tells_of_others"),
    [(WIRE_BYTES, True, False), (WIRE_BYTES / 2, False, False), (2 * WIRE_BYTES, True, True)],
)
def test_what_would_help_depends_on_the_bytes_that_pass(
    tmp_path, sent, offers_halving, tells_of_others
):
    run = write_steps(
        new_run(tmp_path), lambda *_: with_parts(communication=2.0), more=traffic_of(sent=sent)
    )
    advice = network.answer(read(run)).advice

    assert ("bf16 on the wire" in advice) == offers_halving
    assert ("see the answer about the traffic first" in advice) == tells_of_others


def test_saving_that_holds_up_the_steps_is_told_with_what_would_help(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(checkpoint=1.0))
    facts = read(run)

    assert "save less often" in network.answer(facts).advice
    assert "waiting for a checkpoint's copy" in devices.answer(facts).sentence


def test_one_worker_has_no_network(tmp_path):
    facts = read(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=1))

    assert network.answer(facts).verdict == "compute-bound"
    assert traffic.answer(facts).verdict == "no traffic"


def test_sharded_states_leave_the_networks_part_unknown(tmp_path):
    run = new_run(tmp_path)
    run.directory.config.write_text(run.directory.config.read_text() + 'sharding = "full"\n')
    parts = {name: s for name, s in with_parts().items() if name != "communication"}
    found = network.answer(read(write_steps(run, lambda *_: parts)))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "sharded" in found.sentence


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


def test_traffic_within_one_host_is_not_compared_with_its_port(tmp_path):
    run = slow_link(new_run(tmp_path), network_s=0.05, port="25000 Mbit/s")
    path = run.directory.events_of(1, 1)
    path.write_text(path.read_text().replace("host-1", "host-0"))
    found = network.answer(read(run))

    assert "within the host" in found.sentence
    assert "the port says" not in found.sentence
    assert not [f.name for f in found.evidence if "port" in f.name]


def test_few_steps_are_not_trusted(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), steps=5)

    assert network.answer(read(run)).confidence == "low"


@pytest.mark.parametrize("module", [duration, devices, network, step_time, traffic])
def test_a_run_without_steps_is_not_known_and_says_why(tmp_path, module):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = module.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence


def test_the_wall_time_is_divided_without_rest(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            (5.0, step(1, 1.0)),
            (7.0, step(2, 2.0)),
            (10.0, evaluated(2)),
            (11.0, step(3, 1.0)),
            (12.0, AttemptEnded(3, "failed", "no memory")),
        ]
    )
    run.with_events(
        [
            (0.0, started(attempt=2, first_step=3)),
            (3.0, step(3, 1.0)),
            (4.0, AttemptEnded(3, "finished", "done")),
        ],
        attempt=2,
    )
    times = duration.times_of(read(run)[1].attempts)

    assert times.wall_s == 1004.0
    assert times.training_s == 1.0 + 2.0 + 1.0
    assert times.repeated_s == 1.0
    assert times.evaluating_s == 2.0
    assert times.starting_s == 4.0 + 2.0
    assert times.down_s == 1000.0 - 12.0
    assert times.other_s == pytest.approx(times.wall_s - math.fsum(times[1:6]))


def test_a_pause_after_an_attempt_that_ended_well_is_nobodys(tmp_path):
    run = new_run(tmp_path)
    ended = AttemptEnded(1, "finished", "done")
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, ended)])
    run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)

    assert duration.answer(read(run)).verdict == "3 s"


def test_costs_count_the_hosts_of_each_attempt(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts())
    run.directory.config.write_text(
        run.directory.config.read_text() + '\n[cost]\nhost_per_hour = 3600.0\ncurrency = "EUR"\n'
    )
    facts = read(run)
    found = duration.answer(facts)

    assert figure(found, "cost") == pytest.approx(2 * facts.attempts[0].wall_s)
    assert "EUR" in found.sentence


def test_a_running_run_has_taken_so_long_so_far(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts())

    assert "so far" in duration.answer(read(run, 75.0)).sentence


def test_slow_steps_have_their_causes(tmp_path):
    def parts(rank, number):
        if number == 1:
            return with_parts(forward=5.0)
        if number in (10, 30, 50):
            return with_parts(checkpoint=4.0)
        if number == 21:
            return with_parts(forward=2.0)
        if number == 40:
            return with_parts(data=7.0)
        return with_parts()

    begun = 10.0 + sum(sum(parts(0, number).values()) for number in range(1, 21))
    run = write_steps(
        new_run(tmp_path),
        parts,
        beside=lambda rank, end: [(begun + 0.1, evaluated(20))] if rank == 0 else [],
    )
    found = step_time.answer(read(run))
    counts = {f.name: f.value for f in found.evidence if f.name.startswith("slow steps")}

    assert counts == {
        "slow steps: checkpoint": 3,
        "slow steps: data": 1,
        "slow steps: first step": 1,
        "slow steps: evaluation": 1,
    }
    assert "6 of 60 steps took more than" in found.sentence
    assert "save less often" in found.advice


def test_one_slow_step_is_told_as_one_of_all(tmp_path):
    run = write_steps(
        new_run(tmp_path), lambda _, number: with_parts(forward=5.0 if number == 1 else 0.3)
    )

    assert step_time.answer(read(run)).sentence.endswith(
        " 1 of 60 steps took more than 1.5 times the median: the first of an attempt."
    )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.8, "1.80 s"), (31.02, "31.0 s"), (0.9431, "943 ms"), (0.9996, "1.00 s"), (123.4, "123 s")],
)
def test_the_mean_step_is_shown_with_three_digits(seconds, shown):
    assert step_time.in_three_digits(seconds) == shown


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
    assert "messages on their way set the time and not their bytes" in found.sentence
    assert "the bytes alone take" not in found.sentence


@pytest.mark.parametrize(
    ("starting_s", "advice"), [(49.0, "Starting took"), (24.0, "Evaluate"), (1.0, "Evaluate")]
)
def test_advice_is_against_what_takes_most_of_the_time(tmp_path, starting_s, advice):
    """Evaluating takes 25 s."""
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            (starting_s + 1.0, step(1, 1.0)),
            (starting_s + 26.0, dataclasses.replace(evaluated(1), seconds=25.0)),
            (starting_s + 51.0, step(2, 25.0)),
            (starting_s + 51.0, AttemptEnded(2, "finished", "done")),
        ]
    )

    assert duration.answer(read(run)).advice.startswith(advice)


def gpu_run(run, communication=0.05, driver=99.0, power_w=260.0, flops=5e13):
    def beside(rank, end):
        gpu = DeviceFound("cuda:0", "V100", "fp16", 1e14, 16e9)
        values = {
            "gpu/0/utilization_percent": driver,
            "gpu/0/power_w": power_w,
            "gpu/0/power_limit_w": 300.0,
        }
        return [(1.0, gpu), *((float(s), SensorReading(values)) for s in range(2, int(end)))]

    write_steps(
        run,
        lambda *_: with_parts(communication=communication),
        more=lambda *_: {"counts": {"flops": flops}},
        beside=beside,
    )
    for rank in (0, 1):
        path = run.directory.events_of(1, rank)
        path.write_text(path.read_text().replace('"device":"cpu"', '"device":"cuda:0"'))
    return run


def test_gpus_that_compute_are_fully_used(tmp_path):
    found = devices.answer(read(gpu_run(new_run(tmp_path))))

    assert (found.verdict, found.confidence) == ("fully used", "high")
    assert figure(found, "model FLOPs utilisation") == pytest.approx(5e13 / 0.985 / 1e14)
    assert figure(found, "power of its limit") == pytest.approx(260 / 300)


def test_a_driver_that_says_100_percent_of_a_waiting_gpu_is_explained(tmp_path):
    found = devices.answer(read(gpu_run(new_run(tmp_path), communication=15.0, driver=100.0)))

    assert found.verdict == "mostly waiting"
    assert "The driver shows 100 % utilisation although they wait" in found.sentence
    assert "a kernel that spins" in found.sentence


def test_waiting_outside_of_collectives_is_not_blamed_on_them():
    waiting = dataclasses.replace(USED, computing=0.4)
    in_collectives = Shares(0.4, 0.3, 0.28, 0.0, 0.0, 0.02, 0.0)
    for_copies = Shares(0.4, 0.01, 0.01, 0.0, 0.56, 0.02, 0.0)

    assert "a kernel that spins" in answer_in_words(waiting, in_collectives)
    assert "a kernel that spins" not in answer_in_words(waiting, for_copies)
    assert "56 % waiting for a checkpoint's copy" in answer_in_words(waiting, for_copies)


USED = Use(computing=0.96, flops=0.5, driver=1.0, power=0.87, cpu=0.2, foreign_cpu=0.0, is_gpu=True)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "fully used"),
        ({"computing": 0.7}, "partly used"),
        ({"computing": 0.3}, "mostly waiting"),
        ({"flops": 0.06}, "partly used"),  # small products
        ({"flops": math.nan, "power": 0.3}, "partly used"),
        ({"flops": math.nan, "power": math.nan, "driver": math.nan}, "fully used"),
        ({"is_gpu": False, "cpu": 0.95}, "fully used"),
        ({"is_gpu": False, "cpu": 0.10}, "partly used"),  # most cores are idle
        ({"computing": math.nan, "flops": 0.5}, "fully used"),
        ({"computing": math.nan, "flops": 0.05}, "mostly waiting"),
        ({"computing": math.nan, "flops": math.nan}, None),
    ],
)
def test_what_was_measured_decides_and_never_the_driver(changes, verdict):
    assert verdict_of(dataclasses.replace(USED, **changes)) == verdict


def test_a_save_at_the_end_is_no_time_of_its_own(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [(0.0, started()), (1.0, step(1)), (3.0, CheckpointSaved(1, "step-00000001", 10, 2.0))]
    )
    found = duration.answer(read(run, 4.0))

    assert figure(found, "writing checkpoints") == 2.0
    assert figure(found, "wall time") == 3.0
    assert read(run)[1].attempts[0].started_at == WALL_AT
