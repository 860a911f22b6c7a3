import psutil
import pytest

from dragoman.config import ModelSettings
from dragoman.errors import UserError
from dragoman.model.memory import check_memory

SHAPE = ModelSettings(preset="transformer-base")


def test_a_model_that_fits_passes():
    check_memory(SHAPE, 32_000, needed_bytes=1_000_000)


def test_a_model_that_does_not_fit_is_refused_with_what_it_needs():
    everything = psutil.virtual_memory().total + psutil.swap_memory().total
    with pytest.raises(UserError, match=r"width 512.* 32,000 pieces") as caught:
        check_memory(SHAPE, 32_000, needed_bytes=everything + 1)
    assert f"{(everything + 1) / 1e9:,.1f} GB" in str(caught.value)
