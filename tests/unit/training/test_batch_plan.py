import re

import pytest
import torch

from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData
from dragoman.training.batch_plan import plan_batches
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


def test_the_first_limit_ends_the_run(opened):
    assert opened("training.steps=7")[0].last_step == 7
    data, _ = opened("training.steps=100000", "training.epochs=2")
    assert data.last_step == 2 * data.plan.steps_per_epoch


@pytest.mark.parametrize("ranks", [3, 5])
def test_more_workers_than_micro_batches_are_refused_with_a_value_that_works(opened, ranks):
    data, config = opened()
    assert data.plan.micro_batches_per_step == 2
    plan_batches(data.shards, config, ranks=2)
    with pytest.raises(UserError) as refused:
        plan_batches(data.shards, config, ranks)
    said = str(refused.value)
    assert f"{ranks} workers" in said
    assert "start 2 workers or fewer" in said
    (tokens,) = re.findall(r"training\.micro_batch_tokens = (\d+) \(now 300\)", said)
    _, changed = opened(f"training.micro_batch_tokens={tokens}")
    assert plan_batches(data.shards, changed, ranks).micro_batches_per_step >= ranks


def test_where_micro_batches_cannot_be_smaller_updates_can_be_larger(opened):
    longest = int(opened()[0].plan.lengths.max())
    settings = (f"training.micro_batch_tokens={longest}", "training.tokens_per_update=30")
    data, config = opened(*settings)
    ranks = data.plan.micro_batches_per_step + 1
    with pytest.raises(UserError) as refused:
        plan_batches(data.shards, config, ranks)
    (tokens,) = re.findall(r"training\.tokens_per_update = (\d+) \(now 30\)", str(refused.value))
    _, changed = opened(settings[0], f"training.tokens_per_update={tokens}")
    assert plan_batches(data.shards, changed, ranks).micro_batches_per_step >= ranks


def test_where_nothing_helps_more_pairs_are_needed(opened):
    data, config = opened()
    with pytest.raises(UserError, match=r"99999 workers, .* more training pairs"):
        plan_batches(data.shards, config, ranks=99_999)


def test_pairs_that_pass_twice_count_twice(opened):
    once, _ = opened()
    twice, _ = opened("training.r_drop=1.0")
    most = max(len(m.pairs) * twice.plan.lengths[m.pairs].max() for m in batches_of(twice.plan))
    assert 2 * most <= 300
    assert twice.plan.steps_per_epoch == once.plan.steps_per_epoch
    with pytest.raises(UserError) as refused:
        opened("training.r_drop=1.0", f"training.micro_batch_tokens={once.plan.lengths.max() + 1}")
    for key in ("training.r_drop = 1.0", "training.micro_batch_tokens", "data.max_length"):
        assert key in str(refused.value)


def batches_of(plan):
    steps = range(1, plan.steps_per_epoch + 1)
    return [micro_batch for step in steps for micro_batch in plan.batch(step).micro_batches]


def test_subwords_of_a_tokenizer_without_merges_are_refused(opened, tmp_path):
    _, config = opened(
        "tokenizer.kind=unigram", "tokenizer.vocabulary=40", f"data.prepared={tmp_path}/unigram"
    )
    training = config.training.model_copy(update={"subword_dropout": 0.1})
    changed = config.model_copy(update={"training": training})
    with pytest.raises(UserError, match=r"training\.subword_dropout = 0\.1 .* unigram"):
        open_training_data(PreparedData.open(config.prepared_folder), changed, ALONE)
