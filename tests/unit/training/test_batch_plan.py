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


def test_more_workers_than_micro_batches_are_refused(opened):
    data, config = opened()
    with pytest.raises(UserError, match=r"999 workers, .* lower training\.micro_batch_tokens"):
        plan_batches(data.shards, config, ranks=999)


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
