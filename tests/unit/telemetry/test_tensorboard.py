import pytest

from dragoman.telemetry.events import Evaluated, Stamped, StepDone
from dragoman.telemetry.tensorboard import tensorboard_mirror

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def test_tensorboard_reads_scalars_and_translations(tmp_path):
    mirror = tensorboard_mirror(tmp_path)
    for step in (1, 2):
        mirror(
            Stamped(step, step, StepDone(step, 0.5, 3.0, 100, 1e-3, 0.7, True, 0.5, {"data": 0.1}))
        )
    sample = {"source": "a cat", "translation": "eine Katze", "reference": "eine Katze"}
    mirror(Stamped(3, 3, Evaluated(2, 2.5, 2.25, 31.5, 50.0, "", "", True, 1.0, [sample])))

    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"loss/validation", "quality/BLEU", "optimizer/learning rate"} <= set(
        events.Tags()["scalars"]
    )
    (bleu,) = events.Scalars("quality/BLEU")
    assert (bleu.step, bleu.value) == (2, 31.5)
    assert [s.value for s in events.Scalars("speed/target tokens per second")] == [200, 200]
    (text,) = events.Tensors("samples/translations")
    assert "eine Katze" in text.tensor_proto.string_val[0].decode()


def test_without_tensorboard_training_is_warned_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.compat.proto.event_pb2", None)
    assert tensorboard_mirror(tmp_path) is None
    assert "pip install dragoman[tensorboard]" in capsys.readouterr().err
