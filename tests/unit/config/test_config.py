import pytest
from unit.config.refusal import refused

from dragoman.config import dump_config, parse_config
from dragoman.errors import ConfigError


def test_a_schedule_that_ends_needs_to_know_where(text):
    without_end = text.replace("steps = 20\n", "epochs = 1\n", 1)
    assert "needs training.steps" in refused(without_end.replace("inverse-square-root", "cosine"))


@pytest.mark.parametrize(
    ("tails", "kind", "facts"),
    [
        ("[[10, 1e-4]]", "constant", ["schedule.tails", "schedule.kind = 'constant'"]),
        ("[[10, 1e-4]]", "noam", ["schedule.tails", "schedule.kind = 'noam'"]),
        ("[[20, 1e-4]]", "linear", ["schedule.tails", "training.steps = 20"]),
        ("[[3, 1e-4]]", "linear", ["schedule.tails", "schedule.warmup_steps = 5"]),
        ("[[15, 1e-4], [10, 1e-4]]", "cosine", ["schedule.tails", "increase"]),
        ("[[10, 0]]", "linear", ["schedule.tails"]),
        ("[10, 1e-4]", "linear", ["schedule.tails"]),
        ("[[10]]", "linear", ["schedule.tails"]),
    ],
)
def test_tails_that_do_not_follow_the_schedule_are_refused(text, tails, kind, facts):
    settings = [f"schedule.kind={kind}", f"schedule.tails={tails}", "schedule.warmup_steps=5"]
    with pytest.raises(ConfigError) as refused:
        parse_config(text, "x", settings)
    assert all(fact in str(refused.value) for fact in facts)


SCHEDULE_FREE = "optimizer.kind=schedule-free"
CONSTANT = "schedule.kind=constant"


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ([SCHEDULE_FREE], ["optimizer.kind", "schedule.kind", "schedule.peak"]),
        ([SCHEDULE_FREE, "schedule.kind=noam"], ["optimizer.kind", "schedule.kind"]),
        (
            [SCHEDULE_FREE, CONSTANT, "optimizer.average_decay=0.99"],
            ["optimizer.kind", "optimizer.average_decay"],
        ),
        (
            [SCHEDULE_FREE, CONSTANT, "optimizer.beta1=0.0"],
            ["optimizer.kind", "optimizer.beta1"],
        ),
        (
            ["optimizer.kind=muon", "training.sharding=full"],
            ["optimizer.kind", "training.sharding"],
        ),
        (["optimizer.muon_rate_factor=2"], ["optimizer.kind", "optimizer.muon_rate_factor"]),
    ],
)
def test_an_optimizer_that_does_not_go_with_the_rest_is_refused_with_the_keys(text, changes, keys):
    with pytest.raises(ConfigError) as found:
        parse_config(text, "x.toml", changes)
    sentence = str(found.value)
    assert all(key in sentence for key in keys), sentence
    assert sentence.count(". ") == 0  # one sentence


@pytest.mark.parametrize(
    "changes",
    [
        [SCHEDULE_FREE, CONSTANT, "training.sharding=full"],
        ["optimizer.average_decay=0.999", "training.sharding=full"],
        ["optimizer.kind=muon", "optimizer.average_decay=0.999", "schedule.kind=cosine"],
    ],
)
def test_optimizers_that_go_with_the_rest(text, changes):
    config = parse_config(text, "x.toml", changes)
    assert parse_config(dump_config(config), "x.toml") == config


def test_regularizers_without_what_they_need_are_refused_with_the_keys(text):
    drawn = ["training.subword_dropout=0.1", "tokenizer.kind=unigram"]
    message = refused(text, overrides=drawn)
    assert "training.subword_dropout = 0.1" in message
    assert "tokenizer.kind = 'unigram'" in message
    parse_config(text, "x.toml", [*drawn, "tokenizer.model=given.model"])  # whose kind decides

    alike = ["training.r_drop=1.0", "model.dropout=0.0"]
    message = refused(text, overrides=alike)
    keys = ("r_drop = 1.0", "model.dropout", "attention_dropout", "activation_dropout")
    assert all(key in message for key in keys)

    config = parse_config(text, "x.toml", [*alike, "model.activation_dropout=0.1"])
    assert (config.training.passes, config.training.pairs_fill_tokens) == (2, 150)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(
            (
                [f"sync.mode={mode}", "training.sharding=full"],
                [f"sync.mode = '{mode}'", "training.sharding = 'full'"],
            )
            for mode in ("bf16", "local", "diloco", "auto")
        ),
        (
            ["sync.mode=local", "optimizer.kind=schedule-free", "schedule.kind=constant"],
            ["sync.mode = 'local'", "optimizer.kind = 'schedule-free'"],
        ),
        (
            ["sync.mode=diloco", "optimizer.average_decay=0.99"],
            ["sync.mode = 'diloco'", "optimizer.average_decay = 0.99"],
        ),
    ],
)
def test_a_way_to_synchronize_that_does_not_go_with_the_rest_is_refused_with_the_keys(
    text, changes, words
):
    message = refused(text, overrides=changes)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("split", "name"), [("train", "news"), ("validation", "news"), ("test", "train")]
)
def test_only_test_data_has_sets_and_their_names_are_free(text, split, name):
    source = f'{{kind="phrasebook", pairs=3, test_set="{name}"}}'
    message = refused(text, overrides=[f"data.{split}=[{source}]"])
    assert f"data.{split}.0.test_set = '{name}'" in message
