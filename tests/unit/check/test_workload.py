import pytest

from dragoman.check.workload import workload_hash, workload_of
from dragoman.config import load_config, parse_config


@pytest.fixture
def hash_with(digits):
    text = digits.read_text(encoding="utf-8")

    def hashed(*overrides):
        config = parse_config(text, "x", overrides)
        return workload_hash(config, config.tokenizer.vocabulary)

    return hashed


@pytest.mark.parametrize(
    "change",
    [
        "model.width=64",
        "tokenizer.vocabulary=50",
        "training.tokens_per_update=500",
        "training.micro_batch_tokens=200",
        "training.precision=bf16",
        "training.sharding=full",
        "training.r_drop=1.0",
        "training.subword_dropout=0.1",
        "optimizer.kind=muon",
    ],
)
def test_what_a_step_computes_or_sends_makes_another_workload(hash_with, change):
    assert hash_with(change) != hash_with()


@pytest.mark.parametrize(
    "change",
    [
        "name=other",
        "training.steps=7",
        "training.seed=7",
        "schedule.peak=0.1",
        "sync.mode=bf16",
        "data.prepared=elsewhere",
        "evaluation.every_steps=3",
        "cost.host_per_hour=1.0",
    ],
)
def test_what_a_step_does_not_depend_on_makes_none(hash_with, change):
    assert hash_with(change) == hash_with()


@pytest.fixture
def base():
    return load_config("demo")


def changed(config, section, **keys):
    return config.model_copy(update={section: getattr(config, section).model_copy(update=keys)})


def test_a_ring_sends_twice_the_gradients_less_its_own_share(base):
    alone = workload_of(base, 1000, ranks=1, ranks_on_host=1, hosts=1)
    four = workload_of(base, 1000, ranks=4, ranks_on_host=1, hosts=4)
    assert alone.bytes_per_step == 0.0
    assert four.bytes_per_step == pytest.approx(2 * 3 / 4 * 4 * four.parameters)


def test_checkpoints_that_are_kept_and_one_that_is_written(base):
    kept = changed(base, "checkpoints", keep_last=2, keep_best=1)
    assert workload_of(kept, 1000, 1, 1, 1).kept_checkpoints == 4
