import pytest

from dragoman.config import load_config
from dragoman.forecast.computing import (
    micro_batches_of,
    muon_operations,
    operations_of,
    passes_of,
    usual_lengths,
    work_of,
)
from dragoman.forecast.processing import CPU
from dragoman.model.size import training_flops

WMT = load_config("wmt16-en-de")


def test_all_products_are_in_forward_or_backward():
    """The output projection's gradient is computed in forward."""
    lengths = usual_lengths()
    found = operations_of(WMT, 32_768, lengths)
    whole = training_flops(WMT.model, 32_768, lengths.amounts(25_000))

    assert found.forward + found.backward == pytest.approx(whole, rel=1e-6)
    assert found.forward > whole / 3
    assert found.backward < 2 * whole / 3


def test_a_worker_computes_its_share_of_the_micro_batches():
    operations = operations_of(WMT, 32_768, usual_lengths())
    two, one = (work_of(WMT, 32_768, operations, passes, 4, 1e12, CPU) for passes in (2, 1))

    assert two.forward_s == pytest.approx(operations.forward / 2 / 1e12)
    assert two.backward_s == pytest.approx(2 * one.backward_s)
    assert two.last_backward_s == pytest.approx(one.last_backward_s)
    assert two.update_s == one.update_s


def test_micro_batches_are_a_power_of_two_and_one_for_each_rank():
    assert micro_batches_of(WMT, 1) == 4  # 25,000 tokens in micro-batches of 7,000
    assert micro_batches_of(WMT, 5) == 8
    assert [passes_of(4, ranks) for ranks in (1, 2, 3, 4)] == [4, 2, 2, 1]


def test_muon_computes_products_of_its_matrices():
    """One encoder layer of width 2, filter 4: of m x n, five times 4 m^2 n + 2 m^3."""
    model = WMT.model.model_copy(
        update={"width": 2, "filter": 4, "encoder_layers": 1, "decoder_layers": 0}
    )

    def of(small, large):
        return 5 * (4 * small**2 * large + 2 * small**3)

    assert muon_operations(model) == of(2, 6) + of(2, 2) + 2 * of(2, 4)
