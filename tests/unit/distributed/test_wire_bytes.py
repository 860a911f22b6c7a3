import pytest

from dragoman.distributed.ring_bytes import bytes_per_step
from dragoman.distributed.wire_bytes import is_gathered, sent_bytes

ELEMENTS, TENSORS = 61_000_000, 200


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_fp32_sends_as_many_bytes_as_a_ring(ranks):
    ring = bytes_per_step(ELEMENTS, ranks, 1, sharded=False)
    assert sent_bytes("fp32", ELEMENTS, TENSORS, ranks) == pytest.approx(ring, rel=1e-6)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_bf16_sends_half_and_four_bits_an_eighth(ranks):
    exact = sent_bytes("fp32", ELEMENTS, TENSORS, ranks)
    assert sent_bytes("bf16", ELEMENTS, TENSORS, ranks) == pytest.approx(exact / 2, rel=1e-4)
    assert sent_bytes("4bit", ELEMENTS, TENSORS, ranks) == pytest.approx(exact / 8, rel=1e-3)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "4bit"])
def test_two_ranks_gather_and_more_scatter(kind):
    assert is_gathered(kind, ELEMENTS, TENSORS, 2)
    assert not is_gathered(kind, ELEMENTS, TENSORS, 3)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "4bit"])
def test_alone_nothing_is_sent(kind):
    assert sent_bytes(kind, ELEMENTS, TENSORS, 1) == 0.0
