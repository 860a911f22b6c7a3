import pytest
import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from dragoman.batches.collate import collate, cut
from dragoman.config import ModelSettings
from dragoman.model import loss as loss_module
from dragoman.model.loss import Objective, smoothed_cross_entropy
from dragoman.model.r_drop import consistent_cross_entropy, doubled
from dragoman.model.transformer import Transformer
from dragoman.shards.files import PairIds

TOKENS, WIDTH, VOCABULARY = 23, 8, 30


def example(dtype=torch.float64):
    torch.manual_seed(1)
    hidden = torch.randn(2 * TOKENS, WIDTH, dtype=dtype, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(0, VOCABULARY, (TOKENS,))


def plain(hidden, weight, target, smoothing, r_drop):
    """As it stands in the paper, divided by two, from all logits at once."""
    first, second = (hidden @ weight.T).view(2, TOKENS, VOCABULARY)
    entropies = sum(
        cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
        for logits in (first, second)
    )
    p, q = log_softmax(first, 1), log_softmax(second, 1)
    divergences = kl_div(q, p, reduction="sum", log_target=True)
    divergences = divergences + kl_div(p, q, reduction="sum", log_target=True)
    return (entropies + r_drop * divergences / 2) / 2


def pairs():
    return [PairIds([5, 6, 7, 3], [8, 9, 3]), PairIds([4, 3], [10, 11, 12, 13, 3])]


def objective(dropout, r_drop):
    torch.manual_seed(2)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "filter": 32}
    settings = ModelSettings(preset="transformer-tiny", dropout=dropout, **shape)
    return Objective(Transformer(settings, VOCABULARY), 0.1, r_drop)


@pytest.mark.parametrize("rows", [1, 5, 23, 1000], ids="chunks of {} rows".format)
@pytest.mark.parametrize(("smoothing", "r_drop"), [(0.1, 5.0), (0.0, 0.3)])
def test_loss_and_gradients_are_those_of_autograd(rows, smoothing, r_drop):
    hidden, weight, target = example()
    chunk_bytes = rows * 2 * 8 * VOCABULARY
    ours, _, _ = consistent_cross_entropy(hidden, weight, target, smoothing, r_drop, chunk_bytes)
    mine = torch.autograd.grad(3 * ours, (hidden, weight))
    whole = plain(hidden, weight, target, smoothing, r_drop)
    theirs = torch.autograd.grad(3 * whole, (hidden, weight))
    torch.testing.assert_close(ours, whole, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=1e-12)


def test_gradients_are_those_of_finite_differences():
    hidden, weight, target = example()

    def loss(hidden, weight):
        return consistent_cross_entropy(hidden, weight, target, 0.1, 2.0, 1000)[0]

    assert torch.autograd.gradcheck(loss, (hidden, weight))


def test_equal_passes_have_the_loss_of_one():
    hidden, weight, target = example(torch.float32)
    hidden = hidden[:TOKENS].detach()
    twice = consistent_cross_entropy(torch.cat([hidden, hidden]), weight, target, 0.1, 9.0, 1000)
    for mine, one in zip(twice, smoothed_cross_entropy(hidden, weight, target, 0.1), strict=True):
        torch.testing.assert_close(mine, one)


def test_the_likelihood_is_the_mean_of_both_passes():
    hidden, weight, target = example()
    _, total, each = consistent_cross_entropy(hidden, weight, target, 0.3, 1.0, 1000)
    expected = cross_entropy(hidden @ weight.T, target.repeat(2), reduction="none")
    torch.testing.assert_close(each, expected.view(2, -1).mean(0).detach())
    torch.testing.assert_close(total, each.sum())
    assert not total.requires_grad


def test_no_tensor_of_all_logits_is_ever_made():
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    hidden, weight, target = example()
    with Watch():
        consistent_cross_entropy(hidden, weight, target, 0.1, 1.0, 4 * 2 * 8 * VOCABULARY)
    assert 2 * 4 * VOCABULARY <= largest < TOKENS * VOCABULARY


def test_a_doubled_batch_has_each_pair_twice_and_its_tokens_once():
    batch = collate(pairs(), start=2, padding=0)
    twice = doubled(batch)
    for field in ("source_BS", "source_mask", "target_in_BT"):
        torch.testing.assert_close(
            getattr(twice, field), torch.cat([getattr(batch, field)] * 2), atol=0, rtol=0
        )
    assert torch.equal(twice.target_out_N, batch.target_out_N)
    flat = torch.arange(twice.target_in_BT.numel()).view(2, *batch.target_in_BT.shape)
    picked = twice.token_positions_N.view(2, -1)
    assert torch.equal(picked[0], batch.token_positions_N)
    assert torch.equal(picked[1], flat[1].flatten()[batch.token_positions_N])
    assert doubled(collate(pairs()[:1], start=2, padding=0)).source_mask is None


def test_only_training_passes_twice_and_dropout_makes_the_passes_differ():
    batch = collate(pairs(), start=2, padding=0)
    trained, usual = objective(0.3, 5.0), objective(0.3, 0.0)
    trained.eval(), usual.eval()
    assert trained(batch).smoothed.item() == usual(batch).smoothed.item()
    trained.train(), usual.train()
    torch.manual_seed(3)
    with_weight = trained(batch)
    trained.r_drop = 1e-9
    torch.manual_seed(3)
    without = trained(batch)
    assert with_weight.smoothed.item() > without.smoothed.item() + 0.01
    assert with_weight.likelihood.item() == without.likelihood.item()


def test_pieces_of_a_batch_add_up_to_it():
    """Without dropout, which is drawn for each piece."""
    batch = collate(pairs(), start=2, padding=0)
    whole, pieces = objective(0.0, 5.0), objective(0.0, 5.0)
    whole(batch).smoothed.backward()
    for piece in cut(batch, 2):
        pieces(piece).smoothed.backward()
    for one, other in zip(whole.parameters(), pieces.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_comes_near(dtype, monkeypatch):
    monkeypatch.setitem(loss_module.CHUNK_BYTES, "cpu", 1000)
    batch = collate(pairs(), start=2, padding=0)
    half, full = objective(0.0, 5.0), objective(0.0, 5.0)
    with torch.autocast("cpu", dtype=dtype):
        sums = half(batch)
    (sums.smoothed * 4).backward()
    (full(batch).smoothed * 4).backward()
    assert sums.smoothed.dtype == torch.float32
    for one, other in zip(half.parameters(), full.parameters(), strict=True):
        assert one.grad.dtype == torch.float32
        torch.testing.assert_close(one.grad, other.grad, atol=0.1, rtol=0.1)
