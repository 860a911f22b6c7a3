import pytest
from unit.diagnosis.loaded_run import loaded_run
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

from dragoman.diagnosis.speed.device_use import flops_utilization, use_of
from dragoman.diagnosis.speed.foreign_load import crowded_hosts, loads_of
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.telemetry.events import DeviceFound

CPU = [(0.5, DeviceFound("cpu", "EPYC", "fp32", 1e11, 64e9))]


def use(run):
    facts = read(run)
    return use_of(facts, loads_of(facts), crowded_hosts(facts))


def cpu_run(tmp_path, busy, own):
    return loaded_run(
        new_run(tmp_path),
        busy,
        own,
        more=lambda *_: {"counts": {"flops": 5e9}},  # 5 % of what is possible in a second
        also=CPU,
    )


def test_computing_is_the_mean_over_ranks_of_the_usual_steps(tmp_path):
    def parts(rank, number):
        forward = 0.3 if rank == 0 else 0.8
        return with_parts(forward=9.0 if number == 1 else forward, communication=1.0 - forward)

    facts = read(write_steps(new_run(tmp_path), parts))
    split = speed_of(facts).split
    found = use_of(facts, {}, {})

    assert found.computing == pytest.approx((0.92 + 1.42) / 2 / split.step_s)


def test_utilization_leaves_out_first_steps_and_hangs(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda _, number: with_parts(forward={1: 9.0, 30: 300.0}.get(number, 0.3)),
        more=lambda *_: {"counts": {"flops": 1e10}},
        beside=lambda *_: CPU,
    )

    assert flops_utilization(read(run)) == pytest.approx(1e10 / 0.985 / 1e11)


def test_small_products_are_only_blamed_on_processors_that_the_run_has_for_itself(tmp_path):
    alone, crowded, idle = (tmp_path / name for name in ("alone", "crowded", "idle"))
    for folder in (alone, crowded, idle):
        folder.mkdir()

    assert use(cpu_run(alone, lambda *_: 98.0, lambda *_: 97.0)).has_small_products
    assert not use(cpu_run(crowded, lambda *_: 98.0, lambda *_: 60.0)).has_small_products
    assert not use(cpu_run(idle, lambda *_: 30.0, lambda *_: 29.0)).has_small_products


def test_a_host_whose_ranks_get_less_than_those_of_others_is_held_back(tmp_path):
    found = use(
        cpu_run(
            tmp_path,
            busy=lambda rank, _: 45.0 if rank else 95.0,
            own=lambda rank, _: 44.0 if rank else 94.0,
        )
    )

    assert found.held_back == "host-1"
