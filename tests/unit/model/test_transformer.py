import subprocess
import sys

import pytest
import torch

from dragoman.batches.collate import collate
from dragoman.config import PRESETS, ModelSettings
from dragoman.model.dropout import keep_mask
from dragoman.model.loss import Objective
from dragoman.model.size import count_parameters
from dragoman.model.transformer import (
    FeedForward,
    Prefix,
    Transformer,
    alignment_layer,
    without_weights,
)
from dragoman.shards.files import PairIds

TINY = ModelSettings(preset="transformer-tiny", width=32, heads=4, filter=48, dropout=0.2)


def tiny_model(vocabulary=50):
    torch.manual_seed(1)
    return Transformer(TINY, vocabulary).eval()


def test_transformer_base_has_the_parameters_it_must_have():
    model = Transformer(ModelSettings(preset="transformer-base"), 32_768)
    assert sum(parameter.numel() for parameter in model.parameters()) == 60_880_896


@pytest.mark.parametrize("preset", PRESETS)
def test_the_formula_counts_every_preset_right(preset):
    settings = ModelSettings(preset=preset, encoder_layers=2, decoder_layers=1)
    with torch.device("meta"):
        model = Transformer(settings, 500)
    assert count_parameters(settings, 500) == sum(p.numel() for p in model.parameters())


def test_padding_changes_nothing():
    model = tiny_model()
    short, long = PairIds([5, 6, 3], [7, 8, 3]), PairIds([5, 9, 4, 8, 7, 3], [7, 8, 9, 10, 11, 3])
    with torch.no_grad():
        alone = collate([short], 2, 0)
        together = collate([short, long], 2, 0)
        expected = model(alone.source_BS, alone.source_mask, alone.target_in_BT)[0]
        padded = model(together.source_BS, together.source_mask, together.target_in_BT)[0, :3]
    torch.testing.assert_close(padded, expected)


def test_padding_changes_neither_loss_nor_gradients():
    pairs = [PairIds([5, 6, 3], [7, 3]), PairIds([5, 9, 4, 8, 7, 3], [7, 8, 9, 10, 11, 3])]

    def gradients(groups):
        objective = Objective(tiny_model(), 0.1)
        loss = sum(objective(collate(group, 2, 0)).smoothed for group in groups)
        loss.backward()
        return loss.detach(), [p.grad for p in objective.parameters()]

    loss_apart, apart = gradients([[pairs[0]], [pairs[1]]])
    loss_together, together = gradients([pairs])
    torch.testing.assert_close(loss_apart, loss_together)
    for one, other in zip(apart, together, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_decoding_with_a_cache_equals_the_whole_forward():
    model = tiny_model()
    source = torch.tensor([[5, 6, 7, 3], [8, 9, 3, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]], dtype=torch.bool)[:, None, None, :]
    target = torch.tensor([[2, 10, 11, 12, 13], [2, 20, 21, 22, 23]])
    with torch.no_grad():
        whole = model(source, mask, target)
        encoded, prefix = model.encode(source, mask), Prefix()
        for position in range(target.shape[1]):
            hidden, prefix = model.step(target[:, position], prefix, encoded)
            torch.testing.assert_close(hidden, whole[:, position])


def test_rows_of_one_sentence_share_its_source():
    model = tiny_model()
    source = torch.tensor([[5, 6, 7, 3], [8, 9, 4, 3]])
    tokens = torch.tensor([10, 11, 12, 20, 21, 22])
    with torch.no_grad():
        shared, _ = model.step(tokens, Prefix(), model.encode(source, None))
        repeated, _ = model.step(
            tokens, Prefix(), model.encode(source.repeat_interleave(3, dim=0), None)
        )
    torch.testing.assert_close(shared, repeated)


def test_a_later_target_token_cannot_be_seen():
    model = tiny_model()
    source = torch.tensor([[5, 6, 3]])
    with torch.no_grad():
        one = model(source, None, torch.tensor([[2, 10, 11, 12]]))
        other = model(source, None, torch.tensor([[2, 10, 11, 40]]))
    torch.testing.assert_close(one[:, :3], other[:, :3])
    assert not torch.allclose(one[:, 3], other[:, 3])


def test_source_target_and_output_share_one_embedding():
    names = [name for name, _ in tiny_model().named_parameters()]
    assert [name for name in names if "embedding" in name] == ["embedding.weight"]
    assert tiny_model().output_weight.shape == (50, 32)


def test_activation_dropout_is_that_of_plain_operations():
    torch.manual_seed(1)
    layer = FeedForward(TINY.model_copy(update={"activation_dropout": 0.25}))
    x = torch.randn(3, 5, TINY.width, requires_grad=True)
    torch.manual_seed(2)
    found = layer(x)
    torch.manual_seed(2)
    inner = layer.inner(layer.norm(x)).relu()
    mask = keep_mask(0.25, (15, TINY.filter)).view_as(inner)
    expected = layer.outer(inner * mask / 0.75)
    torch.testing.assert_close(found, expected)
    inputs = [x, *layer.parameters()]
    gradients = [torch.autograd.grad(each.square().sum(), inputs) for each in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_attention_is_a_distribution_over_the_source_that_padding_does_not_change():
    model = tiny_model()
    short, long = PairIds([5, 6, 3], [7, 8, 3]), PairIds([5, 9, 4, 8, 7, 3], [7, 8, 9, 10, 11, 3])
    alone, together = collate([short], 2, 0), collate([short, long], 2, 0)
    with torch.no_grad():
        found = []
        for batch in (alone, together):
            source = model.encode(batch.source_BS, batch.source_mask)
            found.append(model.attention(source, batch.target_in_BT))
    assert found[1].shape == (2, 6, 6)
    torch.testing.assert_close(found[1].sum(2), torch.ones(2, 6))
    torch.testing.assert_close(found[1][0, :3, :3], found[0][0])
    assert not found[1][0, :, 3:].any()


def test_attention_is_that_of_the_layer_which_aligns():
    assert [alignment_layer(count) for count in (1, 2, 6)] == [0, 0, 4]
    torch.manual_seed(1)
    model = Transformer(TINY.model_copy(update={"decoder_layers": 3}), 50).eval()
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])
    with torch.no_grad():
        before = model.attention(model.encode(source, None), target)
        torch.nn.init.normal_(model.decoder[2].cross_attention.query.weight)
        assert torch.equal(model.attention(model.encode(source, None), target), before)
        torch.nn.init.normal_(model.decoder[1].cross_attention.query.weight)
        assert not torch.equal(model.attention(model.encode(source, None), target), before)


def test_weights_can_be_assigned_to_a_model_without_any():
    model = tiny_model()
    empty = without_weights(TINY, 50)
    assert all(weight.is_meta for weight in empty.parameters())
    empty.load_state_dict(model.state_dict(), assign=True)
    tokens = torch.tensor([[5, 6, 7]])
    assert torch.equal(empty.eval()(tokens, None, tokens), model(tokens, None, tokens))


def test_a_model_without_weights_needs_no_compiler():
    program = (
        "import sys; from dragoman.config import ModelSettings; "
        "from dragoman.model.transformer import without_weights; "
        "without_weights(ModelSettings(preset='transformer-tiny'), 50); "
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
