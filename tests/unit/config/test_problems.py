import pytest
from unit.config.refusal import refused


def test_an_unknown_key_is_refused_and_the_nearest_one_named(text):
    message = refused(text.replace("warmup_steps = 20", "warmup_stepz = 20"))
    assert (
        message == "x.toml: unknown key schedule.warmup_stepz; did you mean schedule.warmup_steps?"
    )


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one(text):
    message = refused(text.replace("[tokenizer]", "[tokenizer]\ntokens_per_update = 3"))
    assert "unknown key tokenizer.tokens_per_update" in message
    assert "did you mean training.tokens_per_update?" in message


def test_a_key_like_no_other_is_told_the_known_ones(text):
    assert "known keys are tokenizer.kind, tokenizer.vocabulary," in refused(
        text.replace("[tokenizer]", "[tokenizer]\nzzz = 3")
    )
    assert "dragoman config --keys" in refused(text.replace("[training]", "[training]\nzzz = 3"))


@pytest.mark.parametrize(
    ("right", "wrong", "key"),
    [
        ("steps = 20", 'steps = "20"', "training.steps = '20'"),
        ("steps = 20", "steps = 2.5", "training.steps = 2.5"),
        ("steps = 20", "steps = 0", "training.steps = 0"),
        ("peak = 0.005", "peak = -1.0", "schedule.peak = -1.0"),
        ('device = "cpu"', 'device = "tpu"', "training.device = 'tpu'"),
        ("filter = 64", "filter = true", "model.filter = true"),
        ('name = "digits"', 'name = "../x"', "name = '../x'"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(text, right, wrong, key):
    assert right in text
    assert key in refused(text.replace(right, wrong, 1))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("name=größe", "name = 'größe' should be 1 to 200 letters from a to z or A to Z, digits,"),
        ('name="a\\n"', "name = 'a\\n' should be 1 to 200 letters"),
        (
            "preemption.metadata_address=x",
            "= 'x' should be an address without a path, such as http:",
        ),
        (f"data.folder={'x' * 5000}", "... should have at most 4096 characters"),
        ("training.steps=many", "training.steps = 'many' should be a whole number"),
        ("data.train=[]", "data.train is too short; at least 1 must be there"),
    ],
)
def test_what_is_allowed_is_said_in_words(text, override, sentence):
    message = refused(text, overrides=[override])
    assert sentence in message
    assert "pattern" not in message


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ('kind="phrasebook",pairs="x"', "data.train.0.pairs = 'x' should be a whole number"),
        ('kind="x"', "data.train.0.kind = 'x' should be one of text, tsv, jsonl, tmx, gettext, "),
        ("", "data.train.0 needs a kind: one of text, "),
        (
            'kind="phrasebook",pairs=3,languages="e1"',
            "data.train.0.languages = 'e1' should be two language codes, such as en-de",
        ),
    ],
)
def test_a_wrong_source_is_one_problem(text, source, sentence):
    message = refused(text, overrides=[f"data.train=[{{{source}}}]"])
    assert sentence in message
    assert ";" not in message


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ('data.train=[{kind="csv"}]', "data.train.0.kind = 'csv' should be one of text, tsv,"),
        ('data.train=[{kind="csv"}]', "or phrasebook; did you mean tsv?"),
        ('data.train=[{kind="phrasebook",pairs=9,wieght=2.0}]', "did you mean data.train.weight?"),
        ("data.train=[3]", "data.train.0 = 3 should be a table"),
        ("data.train=x", "data.train = 'x' should be a list"),
        ("model=3", "model = 3 should be a table"),
        ("notify.command=x", "notify.command = 'x' should be a list"),
        ("cleaning.scripts=3", "cleaning.scripts = 3 should be true or false"),
        ("training.steps=2.5", "training.steps = 2.5 should be a whole number"),
        ("name=[1]", "name = [1] should be text in quotes"),
    ],
)
def test_no_error_is_in_the_words_of_a_library(text, override, sentence):
    message = refused(text, overrides=[override])
    assert sentence in message
    for word in ("tuple", "dictionary", "instance", "Input", "tag", "pydantic"):
        assert word not in message


def test_an_unknown_key_of_a_source_is_compared_with_the_keys_of_its_kind(text):
    source = 'kind="text",source="a",target="b",name="news"'
    message = refused(text, overrides=[f"data.test=[{{{source}}}]"])
    assert "unknown key data.test.0.name; known keys are data.test.kind" in message
    assert "data.test.test_set" in message
    assert "data.test.name" not in message
    named = 'kind="sacrebleu",nmae="wmt16"'
    assert "did you mean data.test.name?" in refused(text, overrides=[f"data.test=[{{{named}}}]"])


def test_an_unknown_preset_is_one_problem(text):
    message = refused(text, overrides=["model={preset='huge'}"])
    assert "model.preset = 'huge' should be 'transformer-tiny'" in message
    assert "missing" not in message


def test_a_model_without_a_preset_is_told_to_name_one(text):
    message = refused(text, overrides=["model={}"])
    assert "model.preset is missing; add it" in message
    assert "model.width" not in message


@pytest.mark.parametrize(
    ("override", "shown"),
    [("training.steps=true", "= true should"), ("data.folder=2026-01-01", "= 2026-01-01 should")],
)
def test_a_wrong_value_is_shown_as_it_was_written(text, override, shown):
    assert shown in refused(text, overrides=[override])
