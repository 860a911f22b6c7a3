import pytest
import torch

from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData
from dragoman.training.data import open_training_data

ALONE = Group(0, 1, 0, torch.device("cpu"))


@pytest.fixture
def opened(digits):
    def with_settings(*overrides):
        config = parse_config(digits.read_text(encoding="utf-8"), "x", overrides)
        prepare(config)
        prepared = PreparedData.open(config.prepared_folder)
        return open_training_data(prepared, config, ALONE), config

    return with_settings


def test_a_loader_begins_where_the_run_goes_on(opened):
    data, _ = opened()
    with data.loader(ALONE, first_step=3, summed_ranks=[0]) as loader:
        assert [loader.next().step, loader.next().step] == [3, 4]


def test_updates_have_the_tokens_that_are_asked_for_in_drawn_subwords_too(opened):
    """800 pairs of about 1,700 target tokens: what sentences gain, batches lose in pairs."""
    tokens = {}
    for share in (0.0, 0.3):
        data, config = opened(
            f"training.subword_dropout={share}", "training.micro_batch_tokens=150"
        )
        steps = data.plan.steps_per_epoch
        with data.loader(ALONE, first_step=1, summed_ranks=[0]) as loader:
            tokens[share] = sum(loader.next().tokens for _ in range(steps)) / steps
        assert tokens[share] == pytest.approx(config.training.tokens_per_update, rel=0.08)
    assert opened()[0].subword_dropout is None
