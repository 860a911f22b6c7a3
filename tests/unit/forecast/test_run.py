import pytest

from dragoman.config import load_config
from dragoman.forecast.computing import usual_lengths
from dragoman.forecast.processing import CPU, GPU
from dragoman.forecast.run import SAVED_BYTES_PER_S, START_S, evaluation_s, extra_of
from dragoman.model.size import size_of

WMT = load_config("wmt16-en-de")
SIZE = size_of(WMT.model, 32_768)


def test_evaluations_and_saves_are_counted_by_steps():
    found = extra_of(WMT, SIZE, 8000, 1.0, 60.0, CPU)

    assert (found.evaluations, found.saves) == (2, 6)  # every 4,000; every 2,000, and after each
    saves_s = 6 * SIZE.checkpoint_bytes / SAVED_BYTES_PER_S
    assert found.seconds == pytest.approx(START_S + 120 + saves_s)


def test_without_an_interval_saves_come_by_the_clock():
    config = load_config("wmt16-en-de", ["checkpoints.lost_minutes=10"])
    config = config.model_copy(
        update={"checkpoints": config.checkpoints.model_copy(update={"every_steps": None})}
    )
    assert extra_of(config, SIZE, 6000, 1.0, 0.0, CPU).saves == 10 + 2


def test_on_a_gpu_host_other_cores_save():
    assert extra_of(WMT, SIZE, 8000, 1.0, 60.0, GPU).save_s == 0


def test_workers_share_an_evaluation():
    one, four = (evaluation_s(WMT, 32_768, 3000, usual_lengths(), ranks, 1e12) for ranks in (1, 4))
    assert one == pytest.approx(4 * four)


def test_beside_training_only_losses_take_time_from_it():
    settings = WMT.evaluation.model_copy(update={"beside": True})
    beside = WMT.model_copy(update={"evaluation": settings})
    stopped_s, beside_s = (
        evaluation_s(config, 32_768, 3000, usual_lengths(), 1, 1e12) for config in (WMT, beside)
    )
    assert 0 < beside_s < stopped_s / 2
