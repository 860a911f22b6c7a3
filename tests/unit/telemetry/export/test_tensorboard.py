import pytest

from dragoman.telemetry.events import CheckpointSaved, Evaluated, SensorReading, Stamped, StepDone
from dragoman.telemetry.export.tensorboard import TensorBoardFiles

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def step(number):
    parts = {"data": 0.1, "exposed communication": 0.25}
    return StepDone(number, 0.5, 3.0, 100, 1e-3, 0.7, True, 0.5, parts, {"sent": 2_000_000})


def reading(sent_bytes):
    return SensorReading({"cpu/percent": 50.0, "network/eth0/sent_bytes_total": sent_bytes})


def shown(folder):
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return events


def test_tensorboard_reads_scalars_and_translations(tmp_path):
    exporter = TensorBoardFiles(tmp_path)
    for number in (1, 2):
        exporter(Stamped(number, number, step(number)))
    sample = {"source": "a cat", "translation": "eine Katze", "reference": "eine Katze"}
    exporter(Stamped(3, 3, Evaluated(2, 2.5, 2.25, 31.5, 50.0, "", "", True, 1.0, [sample])))
    exporter(Stamped(4, 4, CheckpointSaved(2, "step-00000002", 5_000_000, 0.5)))
    exporter.close()

    events = shown(tmp_path)
    tags = events.Tags()["scalars"]
    assert {"loss/validation", "quality/BLEU", "optimizer/learning rate"} <= set(tags)
    (bleu,) = events.Scalars("quality/BLEU")
    assert (bleu.step, bleu.value) == (2, 31.5)
    assert [s.value for s in events.Scalars("speed/target tokens per second")] == [200, 200]
    assert [s.value for s in events.Scalars("step parts/exposed communication seconds")] == [
        0.25,
        0.25,
    ]
    assert events.Scalars("traffic/sent megabytes")[0].value == 2.0
    assert events.Scalars("checkpoint/megabytes")[0].value == 5.0
    (text,) = events.Tensors("samples/translations")
    assert "eine Katze" in text.tensor_proto.string_val[0].decode()
    # TensorBoard makes a group of what stands before the slash.
    assert all(tag.count("/") == 1 for tag in tags)


def test_sensors_are_grouped_by_host_and_counters_shown_as_rates(tmp_path):
    exporter = TensorBoardFiles(tmp_path, "node1")
    exporter(Stamped(100.0, 10.0, step(7)))
    exporter(Stamped(101.0, 11.0, reading(1_000)))
    exporter(Stamped(103.0, 13.0, reading(5_000)))
    exporter(Stamped(104.0, 14.0, reading(0)))  # counted anew
    exporter.close()
    events = shown(tmp_path)
    busy = events.Scalars("node1 cpu/percent")
    assert [(s.step, s.value) for s in busy] == [(7, 50.0)] * 3
    (rate,) = events.Scalars("node1 network/eth0 sent bytes per s")
    assert (rate.wall_time, rate.value) == (103.0, 2000.0)


def test_of_fast_steps_some_are_shown(tmp_path):
    exporter = TensorBoardFiles(tmp_path)
    for number in range(40):
        exporter(Stamped(number / 20, 100 + number / 20, step(number)))
    exporter.close()
    assert [s.step for s in shown(tmp_path).Scalars("progress/epoch")] == [0, 10, 20, 30]


def test_other_hosts_show_only_what_is_their_own(tmp_path):
    exporter = TensorBoardFiles(tmp_path, "node2", of_rank_only=True)
    exporter(Stamped(100.0, 10.0, step(7)))
    exporter(Stamped(101.0, 11.0, reading(1_000)))
    exporter.close()
    assert set(shown(tmp_path).Tags()["scalars"]) == {
        "step parts/data seconds",
        "step parts/exposed communication seconds",
        "traffic/sent megabytes",
        "node2 cpu/percent",
    }
