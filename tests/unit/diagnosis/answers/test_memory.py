import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure

from dragoman.diagnosis.answers import memory
from dragoman.telemetry.events import AttemptEnded, DeviceFound, Incident, SensorReading


def usual_run(tmp_path, **more):
    return write_steps(new_run(tmp_path), lambda *_: with_parts(), **more)


@pytest.mark.parametrize(("peak", "is_told"), [(15.5e9, True), (11e9, False)])
def test_memory_near_its_limit_is_told(tmp_path, peak, is_told):
    run = usual_run(
        tmp_path,
        more=lambda *_: {"memory_peak_bytes": peak},
        beside=lambda *_: [(0.5, DeviceFound("cuda:0", "V100", "fp16", None, 16e9))],
    )

    assert (memory.answer(read(run)) is not None) == is_told


def test_ranks_of_one_host_share_its_memory(tmp_path):
    cpu = DeviceFound("cpu", "EPYC", "fp32", None, 16e9)
    run = usual_run(
        tmp_path, more=lambda *_: {"memory_peak_bytes": 8e9}, beside=lambda *_: [(0.5, cpu)]
    )
    for rank in (0, 1):
        path = run.directory.events_of(1, rank)
        path.write_text(path.read_text().replace("host-1", "host-0"))

    found = memory.answer(read(run))

    assert figure(found, "host-0, peak") == 1.0
    # 4,096 tokens filled it: 85 % of that, in blocks of 64
    assert [a.command for a in found.advice] == ["training.micro_batch_tokens = 3456"]


def test_steps_that_ran_out_of_memory_are_counted(tmp_path):
    incident = Incident(9, "out-of-memory", "", ranks=(1,), pieces=2)
    found = memory.answer(read(usual_run(tmp_path, beside=lambda *_: [(20.0, incident)])))

    assert found.verdict == "ran out"
    assert figure(found, "steps that ran out of memory") == 1


def test_a_host_that_something_else_fills_is_looked_at_rather_than_the_batches(tmp_path):
    full = {"memory/available_bytes": 1e9, "memory/total_bytes": 64e9}
    run = usual_run(
        tmp_path,
        beside=lambda rank, end: [(s, SensorReading(full)) for s in (20.0, 30.0) if rank == 1],
    )
    found = memory.answer(read(run))

    assert found.verdict == "near its limit"
    assert [a.command for a in found.advice] == [
        "ssh host-1 'ps -eo pid,user,rss,args --sort=-rss | head'"
    ]


def test_where_a_single_pair_does_not_fit_smaller_batches_are_no_advice(tmp_path):
    gpu = DeviceFound("cuda:0", "V100", "fp16", None, 16e9)
    end = AttemptEnded(9, "failed", "too long", "out-of-memory", 1, "host-1")
    run = usual_run(
        tmp_path,
        more=lambda *_: {"memory_peak_bytes": 15.5e9},
        beside=lambda rank, last: [(0.5, gpu), *([(last + 1.0, end)] * (rank == 0))],
    )
    found = memory.answer(read(run))

    assert found.verdict == "ran out"
    assert "host-1" in found.plain
    assert not any("micro_batch_tokens" in advice.command for advice in found.advice)
