import psutil
import pytest

from dragoman.config import ModelSettings, OptimizerSettings
from dragoman.errors import UserError
from dragoman.model import memory
from dragoman.model.memory import check_memory, no_room, room_on_cpu
from dragoman.model.size import size_of

SHAPE = ModelSettings(preset="transformer-base")


def test_a_model_that_fits_passes():
    check_memory(SHAPE, 32_000, needed_bytes=1_000_000)


def test_a_model_that_does_not_fit_is_refused_with_what_it_needs():
    everything = psutil.virtual_memory().total + psutil.swap_memory().total
    with pytest.raises(UserError, match=r"width 512.* 32,000 pieces") as caught:
        check_memory(SHAPE, 32_000, needed_bytes=everything + 1)
    assert f"{(everything + 1) / 1e9:,.1f} GB" in str(caught.value)


def test_workers_share_what_is_free_and_saves_need_some(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**10)
    size = size_of(SHAPE, 32_000)
    one, two = (room_on_cpu(size, workers) for workers in (1, 2))
    assert one - two == pytest.approx(0.4e10)
    assert one == pytest.approx(0.8e10 - size.weight_bytes - 2 * size.optimizer_bytes)


def test_an_average_of_the_weights_needs_room_and_so_does_its_copy(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**10)
    plain = size_of(SHAPE, 32_000)
    averaged = size_of(SHAPE, 32_000, OptimizerSettings(average_decay=0.999))
    assert room_on_cpu(plain, 1) - room_on_cpu(averaged, 1) == 2 * plain.weight_bytes


def test_no_room_names_the_keys():
    sentence = str(no_room(300, -5, 2))
    for fact in ("training.micro_batch_tokens", "300", "0.00 GB", "2 worker", "data.max_length"):
        assert fact in sentence


def test_a_model_that_leaves_no_room_is_not_blamed_on_long_pairs():
    sentence = str(no_room(None, 5, 1))
    assert "no memory for the model alone" in sentence
    assert "max_length" not in sentence
