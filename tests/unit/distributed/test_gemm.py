import pytest
import torch

from dragoman.distributed import gemm
from dragoman.distributed.gemm import WORTH_ONEDNN, has_faster_onednn, is_worth_onednn, product

AMD = {"cpu_name": "AMD EPYC", "avx512_f": True}


@pytest.fixture(autouse=True)
def _asked_anew():
    yield
    has_faster_onednn.cache_clear()


@pytest.fixture
def with_onednn(monkeypatch):
    """As on a processor of AMD with 512-bit units; oneDNN computes the same on any other."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(gemm, "has_faster_onednn", lambda: True)


@pytest.mark.parametrize("bias", [None, torch.linspace(-1, 1, 96)])
@pytest.mark.parametrize("layout", ["rows", "columns", "slices"])
def test_a_product_is_that_of_torch_however_factors_lie_in_memory(with_onednn, layout, bias):
    torch.manual_seed(1)
    shapes = {
        "rows": torch.randn,
        "columns": lambda m, n: torch.randn(n, m).T,
        "slices": lambda m, n: torch.randn(2 * m, 3 * n)[::2, n : 2 * n],
    }
    left, right = shapes[layout](200, 80), shapes[layout](80, 96)
    assert is_worth_onednn(left, right)
    expected = left.double() @ right.double()
    found = product(left, right, bias)

    assert found.shape == (200, 96)
    assert torch.allclose(
        found.double(), expected if bias is None else expected + bias, rtol=1e-5, atol=1e-4
    )


def test_a_product_has_the_same_bits_each_time(with_onednn):
    torch.manual_seed(2)
    left, right = torch.randn(300, 128), torch.randn(128, 256)

    assert all(torch.equal(product(left, right), product(left, right)) for _ in range(5))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.ones(8, 128), torch.ones(128, 8)),
        (torch.ones(4, 128, 128), torch.ones(4, 128, 128)),
        (torch.ones(128, 128).bfloat16(), torch.ones(128, 128).bfloat16()),
        (torch.ones(128, 128).double(), torch.ones(128, 128).double()),
    ],
    ids=["small", "several", "bf16", "double"],
)
def test_other_products_are_left_to_torch(with_onednn, left, right):
    assert not is_worth_onednn(left, right)
    assert torch.equal(product(left, right), left @ right)


def test_small_ones_begin_where_the_call_is_made_up_for(with_onednn):
    width = 64
    rows = WORTH_ONEDNN // width**2
    factor = torch.ones(width, width)

    assert is_worth_onednn(torch.ones(rows, width), factor)
    assert not is_worth_onednn(torch.ones(rows - 1, width), factor)


def test_autocast_keeps_its_say(with_onednn):
    factor = torch.ones(128, 128)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_worth_onednn(factor, factor)


@pytest.mark.parametrize(
    ("capabilities", "is_faster"),
    [
        (AMD, True),
        ({**AMD, "cpu_name": "Intel(R) Xeon(R)"}, False),
        ({**AMD, "avx512_f": False}, False),
        ({}, False),
    ],
    ids=["AMD with 512 bits", "Intel", "AMD with 256 bits", "unknown"],
)
def test_the_processor_decides_and_no_measurement(monkeypatch, capabilities, is_faster):
    has_faster_onednn.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)

    assert has_faster_onednn() == (is_faster and torch.backends.mkldnn.is_available())


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(lambda *factors: factors[0] @ factors[1], id="without the bias"),
        pytest.param(lambda: None, id="with other arguments"),
    ],
)
def test_an_operator_that_does_something_else_is_left_alone(monkeypatch, operator):
    has_faster_onednn.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: AMD)
    monkeypatch.setattr(gemm, "_by_onednn", operator)

    assert has_faster_onednn() is False
