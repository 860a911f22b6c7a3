import dataclasses
import math

import pytest
from unit.diagnosis.loaded_run import loaded_run
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import started

from dragoman.diagnosis.answers import devices
from dragoman.diagnosis.answers.devices import answer_in_words, larger_products, verdict_of
from dragoman.diagnosis.speed.bottleneck import Shares
from dragoman.diagnosis.speed.device_use import DeviceUse
from dragoman.telemetry.events import DeviceFound, SensorReading

USED = DeviceUse(computing=0.96, flops=0.5, driver=1.0, power=0.87, cpu=0.2, is_gpu=True)


def gpu_run(run, communication=0.05, driver=99.0, power_w=260.0, flops=5e13, memory_bytes=None):
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
        more=lambda *_: {"counts": {"flops": flops}, "memory_peak_bytes": memory_bytes},
        beside=beside,
    )
    for rank in (0, 1):
        path = run.directory.events_of(1, rank)
        path.write_text(path.read_text().replace('"device":"cpu"', '"device":"cuda:0"'))
    return run


def test_gpus_that_compute_are_fully_used(tmp_path):
    found = devices.answer(read(gpu_run(new_run(tmp_path))))

    assert (found.verdict, found.confidence) == ("fully used", "high")
    assert figure(found, "model FLOPs utilization") == pytest.approx(5e13 / 0.985 / 1e14)
    assert figure(found, "power of its limit") == pytest.approx(260 / 300)


def test_a_driver_that_says_100_percent_of_a_waiting_gpu_is_explained(tmp_path):
    found = devices.answer(read(gpu_run(new_run(tmp_path), communication=15.0, driver=100.0)))

    assert found.verdict == "mostly waiting"
    assert "The driver shows 100 % utilization although they wait" in found.sentence
    assert "a kernel that spins" in found.sentence


def test_waiting_outside_of_collectives_is_not_blamed_on_them():
    waiting = dataclasses.replace(USED, computing=0.4)
    in_collectives = Shares(0.4, 0.3, 0.28, 0.0, 0.0, 0.02, 0.0)
    for_copies = Shares(0.4, 0.01, 0.01, 0.0, 0.56, 0.02, 0.0)

    assert "a kernel that spins" in answer_in_words(waiting, in_collectives)
    assert "a kernel that spins" not in answer_in_words(waiting, for_copies)
    assert "56 % of it for a checkpoint's copy" in answer_in_words(waiting, for_copies)


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
        ({"is_gpu": False, "cpu": 1.0, "crowd": "others"}, "partly used"),
        ({"is_gpu": True, "crowd": "others"}, "fully used"),  # of the host's processors only
        ({"computing": math.nan, "flops": 0.5}, "fully used"),
        ({"computing": math.nan, "flops": 0.05}, "partly used"),
        ({"computing": math.nan, "flops": math.nan}, None),
    ],
)
def test_what_was_measured_decides_and_never_the_driver(changes, verdict):
    assert verdict_of(dataclasses.replace(USED, **changes)) == verdict


def test_a_run_without_steps_is_not_known(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = devices.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence


def test_waiting_for_copies_is_named(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(checkpoint=1.0))

    assert "of it for a checkpoint's copy" in devices.answer(read(run)).sentence


def cpu_run(run, busy, own, flops=5e9, **changes):
    """Writes a CPU run whose devices reach 1e11 FLOP/s; see `loaded_run`."""
    cpu = DeviceFound("cpu", "EPYC", "fp32", 1e11, 64e9)
    return loaded_run(
        run,
        busy,
        own,
        more=lambda *_: {"counts": {"flops": flops}},
        also=[(0.5, cpu)],
        **changes,
    )


def test_other_programs_are_the_cause_and_not_the_batches(tmp_path):
    facts = read(
        cpu_run(
            new_run(tmp_path),
            busy=lambda rank, _: 100.0,
            own=lambda rank, _: 55.0 if rank == 1 else 98.0,
        )
    )
    found = devices.answer(facts)

    assert found.verdict == "partly used"
    assert figure(found, "host-1, processor, other programs") == pytest.approx(0.45)
    assert "45 % of the processors of host-1" in found.plain
    assert "45 % of the processors of host-1" in found.sentence
    assert [advice.command for advice in found.advice] == [
        "ssh host-1 'ps -eo pid,user,pcpu,args --sort=-pcpu | head'"
    ]
    assert "too small" not in found.sentence


def test_small_products_are_blamed_where_nothing_else_explains_it(tmp_path):
    facts = read(cpu_run(new_run(tmp_path), lambda *_: 98.0, lambda *_: 97.0))
    found = devices.answer(facts)

    assert found.verdict == "partly used"
    assert "too small" in found.sentence
    # 25,000 target tokens an update on two ranks
    assert [a.command for a in found.advice] == ["training.micro_batch_tokens = 12480"]


def test_larger_micro_batches_keep_to_memory_and_to_the_update(tmp_path):
    run = gpu_run(new_run(tmp_path), flops=5e12, memory_bytes=8e9)  # of 16e9
    found = larger_products(read(run))

    assert [advice.command for advice in found] == [
        "training.micro_batch_tokens = 6528",
        'training.precision = "fp16"',
    ]


def test_a_quota_is_seen_from_the_cores_that_others_use(tmp_path):
    facts = read(
        cpu_run(
            new_run(tmp_path),
            busy=lambda rank, _: 50.0 if rank == 1 else 95.0,
            own=lambda rank, _: 48.0 if rank == 1 else 94.0,
            flops=5e10,
        )
    )
    found = devices.answer(facts)

    assert found.verdict == "partly used"
    assert "the ranks on host-1 use far fewer cores" in found.sentence
    assert found.advice[0].command == "ssh host-1 'nproc; cat /sys/fs/cgroup/cpu.max'"


def test_a_slow_processor_without_sensors_is_not_explained(tmp_path):
    def beside(rank, end):
        return [(0.5, DeviceFound("cpu", "EPYC", "fp32", 1e11, 64e9))]

    run = write_steps(
        new_run(tmp_path),
        lambda *_: with_parts(),
        more=lambda *_: {"counts": {"flops": 5e9}},
        beside=beside,
    )
    found = devices.answer(read(run))

    assert found.verdict == "partly used"
    assert "was not recorded" in found.sentence
    assert not found.advice
