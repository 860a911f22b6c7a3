import pytest
import torch

from dragoman.model.attention import (
    CrossAttention,
    SelfAttention,
    _softmax,
    _softmax_gradient,
)
from dragoman.model.dropout import keep_mask

WIDTH, HEADS = 16, 4


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(1)


def by_hand(query_LD, key_LD, value_LD, output, seen_LL=None):
    """One sentence, head by head, as in the paper."""
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query_LD[:, part] @ key_LD[:, part].T / size**0.5
        if seen_LL is not None:
            scores = scores.masked_fill(~seen_LL, -torch.inf)
        heads.append(scores.softmax(-1) @ value_LD[:, part])
    return torch.cat(heads, dim=1) @ output.weight.T


def test_self_attention_is_that_of_the_paper():
    attention = SelfAttention(WIDTH, HEADS, dropout=0.0)
    x = torch.randn(5, WIDTH)
    query, key, value = (x @ attention.query_key_value.weight.T).split(WIDTH, dim=1)
    expected = by_hand(query, key, value, attention.output)
    torch.testing.assert_close(attention(x[None])[0], expected)
    earlier = torch.ones(5, 5, dtype=torch.bool).tril()
    causal = by_hand(query, key, value, attention.output, earlier)
    torch.testing.assert_close(attention(x[None], causal=True)[0], causal)


def test_cross_attention_is_that_of_the_paper_and_passes_over_padding():
    attention = CrossAttention(WIDTH, HEADS, dropout=0.0)
    x, source = torch.randn(3, WIDTH), torch.randn(6, WIDTH)
    key, value = (source[:4] @ attention.key_value.weight.T).split(WIDTH, dim=1)
    expected = by_hand(x @ attention.query.weight.T, key, value, attention.output)
    mask = (torch.arange(6) < 4)[None, None, None, :]
    found = attention(x[None], attention.project(source[None]), mask)
    torch.testing.assert_close(found[0], expected)


def test_one_position_at_a_time_gives_what_the_whole_sequence_gives():
    attention = SelfAttention(WIDTH, HEADS, dropout=0.0)
    x = torch.randn(2, 5, WIDTH)
    whole, past = attention(x, causal=True), None
    for position in range(5):
        now, past = attention.step(x[:, position : position + 1], past)
        torch.testing.assert_close(now[:, 0], whole[:, position])


def test_rows_of_the_past_can_be_chosen_and_repeated():
    attention = SelfAttention(WIDTH, HEADS, dropout=0.0)
    x = torch.randn(3, 1, WIDTH)
    _, past = attention.step(x, None)
    chosen = past.rows(torch.tensor([2, 0, 2]))
    after, _ = attention.step(x, chosen)
    _, repeated = attention.step(x[[2, 0, 2]], None)
    expected, _ = attention.step(x, repeated)
    torch.testing.assert_close(after, expected)


def test_dropout_is_for_training_only():
    attention = SelfAttention(WIDTH, HEADS, dropout=0.5)
    x = torch.randn(1, 5, WIDTH)
    assert not torch.equal(attention(x), attention(x))
    attention.eval()
    assert torch.equal(attention(x), attention(x))


@pytest.mark.parametrize("seen", ["all", "padded", "earlier"])
def test_dropped_weights_are_those_of_the_mask(seen):
    """Output and gradients are those of plain operations, which autograd differentiates."""
    batch, length, size = 3, 5, WIDTH // HEADS
    attention = SelfAttention(WIDTH, HEADS, dropout=0.25)
    x = torch.randn(batch, length, WIDTH, requires_grad=True)
    padding = torch.arange(length) < torch.tensor([[5], [3], [1]])
    masks = {"padded": padding[:, None, None, :]}
    torch.manual_seed(2)
    found = attention(x, masks.get(seen), causal=seen == "earlier")

    masks["earlier"] = torch.ones(length, length, dtype=torch.bool).tril()
    split = (x @ attention.query_key_value.weight.T).view(batch, length, 3, HEADS, size)
    query, key, value = split.permute(2, 0, 3, 1, 4)
    scores = query @ key.mT / size**0.5
    if seen in masks:
        scores = scores.masked_fill(~masks[seen], -torch.inf)
    torch.manual_seed(2)
    weights = scores.softmax(-1) * keep_mask(0.25, scores.shape) / 0.75
    expected = (weights @ value).transpose(1, 2).flatten(2) @ attention.output.weight.T
    torch.testing.assert_close(found, expected)

    weighting = torch.randn_like(found)
    parameters = [x, attention.query_key_value.weight, attention.output.weight]
    gradients = [
        torch.autograd.grad((each * weighting).sum(), parameters) for each in (found, expected)
    ]
    torch.testing.assert_close(*gradients)


def test_dropped_attention_to_a_source_has_the_gradients_of_its_function():
    attention = CrossAttention(WIDTH, HEADS, dropout=0.5).double()
    mask = (torch.arange(4) < torch.tensor([[4], [2]]))[:, None, None, :]

    def attend(x, source):
        torch.manual_seed(2)
        return attention(x, attention.project(source), mask)

    inputs = [torch.randn(2, size, WIDTH, dtype=torch.float64) for size in (3, 4)]
    assert torch.autograd.gradcheck(attend, [each.requires_grad_() for each in inputs])


def test_fused_projections_begin_as_narrow_as_single_ones():
    attention = SelfAttention(256, HEADS, dropout=0.0)
    bound = (6 / 512) ** 0.5
    largest = attention.query_key_value.weight.abs().max().item()
    assert 0.99 * bound < largest <= bound


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17])
def test_the_softmax_of_few_and_of_many_scores_is_that_of_torch(length):
    scores = 30 * torch.randn(4, 3, length)
    scores[0, 0, 1:] = -torch.inf
    expected = scores.clone().requires_grad_()
    weights = expected.softmax(dim=-1)
    gradient = torch.randn_like(scores)
    weights.backward(gradient)
    found = _softmax(scores)
    assert torch.allclose(found, weights, atol=1e-6)
    assert torch.allclose(_softmax_gradient(gradient, found), expected.grad, atol=1e-6)
