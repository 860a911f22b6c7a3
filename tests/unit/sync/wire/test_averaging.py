"""What averages do without other ranks; `tests/distributed/test_wire.py` has some."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sync.wire import average
from dragoman.sync.wire.averaging import _Layout

KINDS = ["fp32", "bf16", "4bit"]


@pytest.mark.parametrize("kind", KINDS)
def test_alone_the_mean_is_a_copy_in_fp32(kind):
    whole = torch.arange(12.0).view(3, 4)
    tensors = [whole.t(), torch.tensor([0.5], dtype=torch.float16), torch.empty(0)]
    done = average(tensors, kind)
    assert done.tensors is not None
    assert all(map(torch.equal, done.tensors, [tensor.float() for tensor in tensors]))
    assert (done.non_finite_ranks, done.weights, done.sent_bytes) == ([], [1.0], 0)
    done.tensors[0].zero_()
    assert whole.sum() == 66.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
def test_alone_values_that_are_not_finite_are_reported_too(kind, bad):
    done = average([torch.ones(3), torch.tensor([1.0, bad])], kind)
    assert (done.tensors, done.non_finite_ranks) == (None, [0])


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_makes_no_mean_is_refused(weight):
    with pytest.raises(ValueError, match=str(weight)):
        average([torch.ones(3)], "fp32", weight)


@pytest.mark.parametrize("kind", KINDS)
def test_no_tensors_have_no_mean(kind):
    assert average([], kind).tensors == []


@given(st.sampled_from(KINDS), st.lists(st.integers(0, 90), max_size=9), st.integers(1, 6))
def test_slices_have_every_element_once(kind, sizes, ranks):
    layout = _Layout(kind, tuple(sizes))
    slices = layout.slices(ranks)
    pieces = [piece for part in slices for piece in part.pieces]
    assert len(slices) == ranks
    elements = [e for piece in pieces for e in range(piece.begin, piece.end)]
    assert elements == list(range(sum(sizes)))
    for part in slices:
        codes = [b for piece in part.pieces for b in range(piece.code_begin, piece.code_end)]
        assert codes == list(range(part.end - part.begin))
