import math
import os
import re
from pathlib import Path
from typing import Annotated, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from dragoman.config import (
    Config,
    CorpusSource,
    Section,
    as_before_accumulation,
    config_keys,
    dump_config,
    load_config,
    parse_config,
)
from dragoman.errors import ConfigError


def refused(text, **more):
    with pytest.raises(ConfigError) as caught:
        parse_config(text, origin="x.toml", **more)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def text(digits):
    return digits.read_text(encoding="utf-8")


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
        ("schedule.peak=inf", "schedule.peak = inf should be above 0 and at most 100"),
        ("schedule.peak=1e30", "schedule.peak = 1e+30 should be above 0 and at most 100"),
        ("schedule.peak=nan", "schedule.peak = nan should be above 0 and at most 100"),
        ("schedule.scale=inf", "schedule.scale = inf should be above 0"),
        ("optimizer.epsilon=inf", "optimizer.epsilon = inf should be above 0 and at most 1"),
        ("optimizer.weight_decay=inf", "optimizer.weight_decay = inf should be from 0 to 100"),
        ("optimizer.clip_norm=inf", "optimizer.clip_norm = inf should be from 0 to 1,000,000"),
        ("decoding.max_length_factor=inf", "should be above 0 and at most 100"),
        ("training.hours=inf", "training.hours = inf should be above 0 and at most 1,000,000"),
        ("training.seed=0x10000000000000000", "should be from 0 to 9,223,372,036,854,775,807"),
        ("training.steps=100000000000000000000", "should be from 1 to 1,000,000,000,000"),
        ("training.steps=0x1" + "0" * 5000, "training.steps = a huge int should be from 1"),
        ("model.width=1000000000", "model.width = 1000000000 should be from 2 to 65,536"),
        ("evaluation.beam=100000", "evaluation.beam = 100000 should be from 1 to 100"),
        ("decoding.beam=1000000", "decoding.beam = 1000000 should be from 1 to 100"),
        ("telemetry.sensors_every_s=inf", "should be from 0 to 86,400"),
        ("telemetry.log_every_s=inf", "should be above 0 and at most 86,400"),
        ("preemption.poll_every_s=inf", "should be above 0 and at most 86,400"),
        ("cleaning.max_ratio=inf", "should be above 1 and at most 1,000,000"),
        ('data.folder="a\\u0000b"', "data.folder = 'a\\x00b' should be text without control"),
        (
            'data.train=[{kind="phrasebook",pairs=9,weight=inf}]',
            "weight = inf should be from 0.0001",
        ),
        ('data.train=[{kind="phrasebook",pairs=9,weight=1e300}]', "should be from 0.0001 to"),
        ('data.train=[{kind="phrasebook",pairs=9,weight=1e-9}]', "should be from 0.0001 to 1,000"),
        ("tokenizer.vocabulary=3", "tokenizer.vocabulary = 3 should be from 5 to 1,000,000"),
        ("tokenizer.character_coverage=0.95", "should be from 0.98 to 1"),
        ("model.dropout=0.99999", "model.dropout = 0.99999 should be from 0 to 0.9"),
        ("model.attention_dropout=0.95", "model.attention_dropout = 0.95 should be from 0 to 0.9"),
        ("model.activation_dropout=nan", "model.activation_dropout = nan should be from 0 to 0.9"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_with_them(text, override, sentence):
    assert sentence in refused(text, overrides=[override])


def test_threads_of_a_process_that_there_is_not_are_refused(text):
    threads = "evaluation.beside_threads=4"
    assert "beside_threads = 4 means nothing without beside = true" in refused(
        text, overrides=[threads]
    )
    config = parse_config(text, "x", [threads, "evaluation.beside=true"])
    assert (config.evaluation.beside, config.evaluation.beside_threads) == (True, 4)


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


def test_relative_paths_begin_at_the_folder_of_their_recipe(digits, tmp_path, monkeypatch):
    recipe = tmp_path / "recipes" / "mine.toml"
    recipe.parent.mkdir()
    text = digits.read_text(encoding="utf-8")
    text = re.sub("(?m)^(folder|prepared) = .*$", "", text)
    recipe.write_text(
        text.replace("[tokenizer]", '[tokenizer]\nmodel = "../given.model"').replace(
            "[checkpoints]", '[checkpoints]\nmemory_folder = "/dev/shm"'
        )
        + '\n[notify]\ncommand = ["./tell.sh", "./x"]\n'
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    config = load_config(Path("../recipes/mine.toml"))

    assert config.data.folder == str(recipe.parent)
    assert config.tokenizer.model == str(tmp_path / "given.model")
    assert config.notify.command == (str(recipe.parent / "tell.sh"), "./x")
    assert config.checkpoints.memory_folder == "/dev/shm"
    # What is left out is a default, which is no path of the recipe.
    assert (config.data.prepared, config.data.cache) == ("", "")
    assert config.prepared_folder == Path("prepared/digits")

    # What is typed begins where it is typed, and as text or as a path is the same.
    typed = load_config(recipe, ["data.folder=text", "tokenizer.model=a.model"])
    assert typed.data.folder == str(tmp_path / "elsewhere" / "text")
    assert typed.tokenizer.model == str(tmp_path / "elsewhere" / "a.model")
    assert load_config(recipe, {"data": {"folder": Path("text")}}).data == typed.data

    # A run has absolute paths, so that its config means the same from anywhere.
    copied = tmp_path / "run" / "config.toml"
    copied.parent.mkdir()
    copied.write_text(dump_config(config))
    monkeypatch.chdir(tmp_path)
    assert load_config(copied) == config


def test_every_number_of_a_recipe_is_bounded_on_both_sides():
    """Whatever is added later, too: each key is tried with values that no bound can allow."""
    keys = {
        f"{prefix}{name}": field
        for prefix, section in [("", Config), *_sections(Config)]
        for name, field in section.model_fields.items()
    }
    tried = 0
    for key, field in keys.items():
        if not {int, float} & set(_kinds(field.annotation)):
            continue
        adapter = TypeAdapter(Annotated[field.annotation, *field.metadata, key])
        for value in (math.inf, -math.inf, math.nan, 2**64, -(2**64), 10**400):
            with pytest.raises(ValidationError):
                adapter.validate_python(value)
        tried += 1
    assert tried > 45


def _sections(section):
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield f"{name}.", field.annotation
    yield from (("data.train.", kind) for kind in get_args(get_args(CorpusSource)[0]))


def _kinds(annotation):
    arguments = get_args(annotation)
    return [kind for part in arguments for kind in _kinds(part)] if arguments else [annotation]


def test_bounds_are_told_with_the_keys():
    meanings = {key: meaning for key, _, meaning in config_keys()}
    assert meanings["decoding.beam"].startswith("A number from 1 to 100. ")
    assert meanings["training.hours"].startswith("A number above 0 and at most 1,000,000. ")


def test_a_recipe_that_is_no_plain_file_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * 1_000_001)
    for path, sentence in (
        (tmp_path / "pipe.toml", "it is not a regular file"),
        (Path("/dev/zero"), "it is not a regular file"),
        (tmp_path, "it is not a regular file"),
        (tmp_path / "huge.toml", "it has more than 1,000,000 bytes"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            load_config(path)


def test_toml_that_python_cannot_hold_is_one_sentence(text):
    assert "nested too deeply" in refused("x = " + "[" * 5000)
    assert refused("x = 1" + "0" * 5000).endswith("a number has too many digits; shorten it")
    many = "".join(f"key{number} = 1\n" for number in range(1000))
    assert "and 995 more problem(s)" in refused(many + text)
    assert "unknown key 'line\\nfeed'" in refused('"line\\nfeed" = 1\n' + text)


def test_what_contradicts_itself_is_refused(text):
    assert "does not divide" in refused(text.replace("heads = 2", "heads = 5"))
    assert "nothing would end this run" in refused(text.replace("steps = 20\n", "", 1))
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


def test_tails_are_read_back_and_converted_for_larger_updates(text):
    settings = ["schedule.kind=linear", "schedule.tails=[[12, 1e-4]]", "schedule.warmup_steps=4"]
    config = parse_config(text, "x", settings)
    assert config.schedule.tails == ((12, 1e-4),)
    assert parse_config(dump_config(config), "x") == config
    larger = parse_config(text, "x", [*settings, "sync.mode=accumulate", "sync.accumulate=4"])
    assert larger.schedule.tails == ((3, 2e-4),)
    assert as_before_accumulation(larger, "schedule.tails", larger.schedule.tails) == ((12, 1e-4),)


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


def test_a_config_from_before_there_were_optimizers_to_choose_from_is_adamw(text):
    config = parse_config(text, "x.toml")
    assert (config.optimizer.kind, config.optimizer.average_decay) == ("adamw", 0.0)


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
    sharded = ["training.micro_batch_tokens=auto", "training.sharding=full"]
    message = refused(text, overrides=sharded)
    assert "training.micro_batch_tokens" in message
    assert "training.sharding" in message

    config = parse_config(text, "x.toml", [*alike, "model.activation_dropout=0.1"])
    assert (config.training.passes, config.training.pairs_fill_tokens) == (2, 150)


def test_a_model_without_a_preset_is_told_to_name_one(text):
    message = refused(text, overrides=["model={}"])
    assert "model.preset is missing; add it" in message
    assert "model.width" not in message


def test_a_recipe_of_a_windows_editor_is_read(text, tmp_path):
    recipe = tmp_path / "windows.toml"
    recipe.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load_config(recipe).name == parse_config(text, "x.toml").name


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ('name = "x"\nname = "y"', ["line 2", "name", "twice"]),
        ("[data]\n[model]\n[data]", ["line 3", "[data]", "twice"]),
        ("[schedule]\nkind = linear", ["line 2", "kind", "quotes"]),
        ("[schedule]\npeak = 0,004", ["line 2", "peak", "decimal point"]),
        ("[notify]\nkey = https://secret", ["line 2", "key"]),
        ("kind: linear", ["line 1", "name = value"]),
    ],
)
def test_a_line_that_is_no_toml_is_named_with_its_key_and_without_its_value(line, facts):
    message = refused(line)
    assert all(fact in message for fact in facts), message
    assert "secret" not in message
    assert "('" not in message


@pytest.mark.parametrize(
    ("override", "shown"),
    [("training.steps=true", "= true should"), ("data.folder=2026-01-01", "= 2026-01-01 should")],
)
def test_a_wrong_value_is_shown_as_it_was_written(text, override, shown):
    assert shown in refused(text, overrides=[override])


def test_a_missing_section_and_a_broken_file_are_named(text, tmp_path):
    assert "data is missing" in refused('name = "x"')
    assert "not valid TOML" in refused("name = = 3")
    with pytest.raises(ConfigError, match="no such recipe"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(tmp_path / "binary.toml")


def test_overrides_of_a_section_change_only_what_they_name(text):
    before = parse_config(text, "x.toml")
    changed = parse_config(text, "x.toml", overrides={"training": {"steps": 7}, "name": "other"})
    assert (changed.training.steps, changed.name) == (7, "other")
    assert changed.training.tokens_per_update == before.training.tokens_per_update


def test_overrides_are_toml_values_or_bare_words(text):
    config = parse_config(
        text,
        "x.toml",
        overrides=["training.steps=7", "schedule.kind=cosine", "model.dropout=0.3", "name=other"],
    )
    assert config.training.steps == 7
    assert config.schedule.kind == "cosine"
    assert config.model.dropout == 0.3
    assert config.name == "other"


@pytest.mark.parametrize(
    ("override", "named"), [("steps", "steps"), ("=3", "=3"), ("name.first=1", "name.first")]
)
def test_a_malformed_override_is_explained(text, override, named):
    assert named in refused(text, overrides=[override])


def test_a_preset_gives_the_shape_and_keys_beside_it_change_it(text):
    model = parse_config(text.replace("width = 32\n", ""), "x.toml").model
    assert (model.encoder_layers, model.width, model.filter) == (1, 128, 64)
    base = parse_config(text, "x.toml", ["model.preset=transformer-base"]).model
    assert base.heads == 2


def test_a_dumped_config_reads_back_equal(digits_config):
    again = parse_config(dump_config(digits_config), "again")
    assert again == digits_config
    assert dump_config(again) == dump_config(digits_config)


def test_a_config_is_frozen(digits_config):
    with pytest.raises(ValidationError):
        digits_config.name = "other"


def test_every_key_is_documented():
    undocumented = [key for key, _, meaning in config_keys() if not meaning]
    assert undocumented == []
    assert len({key for key, _, _ in config_keys()}) > 40
    assert Config.model_fields["name"].description


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("telemetry.mlflow", "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"),
        ("data.mirror", "fetch the file yourself"),
    ],
)
@pytest.mark.parametrize("address", ["https://me:hunter2@host:5000/x", "http://hunter2@host"])
def test_a_password_in_an_address_is_refused_and_not_repeated(text, key, advice, address):
    message = refused(text, overrides=[f"{key}={address}"])
    assert f"{key}: an address with a user name or password" in message
    assert advice in message
    assert "hunter2" not in message


def test_a_password_in_the_address_of_a_source_is_refused(text):
    message = refused(text.replace('"train.en"', '"https://me:hunter2@host/train.en"'))
    assert "data.train.0.source: an address with a user name or password" in message
    assert "hunter2" not in message


def test_an_address_may_have_an_at_sign_in_its_path(text):
    parse_config(text, origin="x", overrides=["telemetry.mlflow=https://host/x@y?z=a@b"])


def test_micro_batches_are_a_number_or_found(text):
    config = parse_config(text, "x.toml", ["training.micro_batch_tokens=auto"])
    assert config.training.micro_batch_tokens == "auto"
    assert config.training.micro_batch_limit > 0
    assert parse_config(dump_config(config), "x.toml") == config
    for value in ("0", "1.5", "true", "automatic", "10000000000", "[1]"):
        message = refused(text, overrides=[f"training.micro_batch_tokens={value}"])
        assert "training.micro_batch_tokens = " in message
        assert 'from 1 to 1,000,000,000, or "auto"' in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["sync.mode=turbo"], ["sync.mode", "'accumulate', 'local', 'diloco' or 'auto'"]),
        (["sync.mode=local", "sync.local_steps=13"], ["sync.local_steps = 13", "'diloco'"]),
        (["sync.mode=local", "sync.local_steps=1"], ["sync.local_steps = 1", "from 2 to 500"]),
        (["sync.mode=bf16", "sync.local_steps=4"], ["sync.local_steps = 4", "sync.mode = 'bf16'"]),
        (["sync.group=host"], ["sync.group = 'host'", "sync.mode = 'fp32'"]),
        (["sync.accumulate=4"], ["sync.accumulate = 4", "sync.mode = 'fp32'"]),
        (["sync.accumulate_applied=true"], ["sync.accumulate_applied", "sync.mode = 'fp32'"]),
        (["sync.mode=accumulate"], ["sync.mode = 'accumulate' needs sync.accumulate"]),
        (["sync.mode=local", "sync.outer_momentum=1.0"], ["sync.outer_momentum = 1.0"]),
        (["sync.mode=local", "sync.fragments=9"], ["sync.fragments = 9", "sync.local_steps = 8"]),
        (["sync.mode=local", "sync.delay=8"], ["sync.delay = 8", "more than 7"]),
        (["sync.mode=local", "sync.fragments=0"], ["sync.fragments = 0", "from 1 to 500"]),
        (["sync.mode=local", "sync.mixing=1.5"], ["sync.mixing = 1.5"]),
        (["sync.mode=diloco", "sync.wire=2bit"], ["sync.wire", "'fp32', 'bf16' or '4bit'"]),
        (["sync.mode=local", "sync.bucket_mb=4"], ["sync.bucket_mb = 4.0", "'local'"]),
        (["sync.mode=auto", "sync.bucket_mb=4"], ["sync.bucket_mb = 4.0", "'auto'"]),
        (["sync.mode=auto", "sync.wire=4bit"], ["sync.wire = '4bit'", "sync.mode = 'auto'"]),
        (["sync.mode=auto", "training.sharding=full"], ["sync.mode = 'auto'", "'full'"]),
        (["sync.bucket_mb=0"], ["sync.bucket_mb = 0"]),
        (["sync.wire=4bit"], ["sync.wire = '4bit'", "sync.mode = 'fp32'"]),
        (
            ["sync.mode=accumulate", "sync.accumulate=64", "training.tokens_per_update=100000000"],
            ["training.tokens_per_update = 6400000000"],
        ),
        *(
            (
                [f"sync.mode={mode}", "training.sharding=full"],
                [f"sync.mode = '{mode}'", "training.sharding = 'full'"],
            )
            for mode in ("bf16", "local", "diloco")
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
def test_a_way_to_synchronize_that_makes_no_sense_is_refused_with_the_keys(text, changes, words):
    message = refused(text, overrides=changes)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_a_config_from_before_there_were_modes_is_exact(text):
    config = parse_config(text, "x.toml")
    assert (config.sync.mode, config.sync.is_local, config.sync.window_steps) == ("fp32", False, 1)


@pytest.mark.parametrize(("mode", "steps", "outer"), [("local", 8, 1.0), ("diloco", 30, 0.7)])
def test_modes_with_steps_of_their_own_have_defaults_that_the_config_shows(
    text, mode, steps, outer
):
    config = parse_config(text, "x.toml", [f"sync.mode={mode}"])
    assert (config.sync.window_steps, config.sync.outer_rate) == (steps, outer)
    assert f"local_steps = {steps}" in dump_config(config)
    assert parse_config(dump_config(config), "x.toml") == config


@pytest.mark.parametrize(
    ("changes", "fragments", "delay"),
    [
        ([], 4, 2),
        (["sync.local_steps=12"], 4, 3),
        (["sync.local_steps=3"], 3, 1),
        (["sync.fragments=1"], 1, 0),
        (["sync.fragments=2"], 2, 4),
        (["sync.delay=0"], 4, 0),
    ],
)
def test_one_fragment_is_always_on_its_way_unless_there_is_one_or_another_delay(
    text, changes, fragments, delay
):
    sync = parse_config(text, "x.toml", ["sync.mode=local", *changes]).sync
    assert (sync.fragments, sync.delay) == (fragments, delay)


@pytest.mark.parametrize("key", ["local_steps", "wire", "fragments", "delay", "mixing"])
def test_a_key_that_a_program_sets_to_none_is_unset(text, key):
    unset = parse_config(text, "x.toml", ["sync.mode=local"])
    assert parse_config(text, "x.toml", {"sync.mode": "local", f"sync.{key}": None}) == unset


def test_only_the_key_that_was_given_is_refused(text):
    """And not the delay, which would follow from it."""
    message = refused(text, overrides=["sync.mode=local", "sync.local_steps=-3"])
    assert "sync.local_steps = -3" in message
    assert "sync.delay" not in message


def test_larger_updates_see_the_same_tokens_and_are_converted_once(text):
    plain = parse_config(text, "x.toml")
    larger = parse_config(text, "x.toml", ["sync.mode=accumulate", "sync.accumulate=4"])
    assert larger.training.tokens_per_update == 4 * plain.training.tokens_per_update
    assert (plain.training.steps, larger.training.steps) == (20, 5)
    assert (plain.schedule.warmup_steps, larger.schedule.warmup_steps) == (20, 5)
    assert (plain.evaluation.every_steps, larger.evaluation.every_steps) == (10, 3)
    assert (plain.checkpoints.every_steps, larger.checkpoints.every_steps) == (5, 2)
    assert larger.sync.accumulate_applied
    assert parse_config(dump_config(larger), "x.toml") == larger


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.steps", 7),
        ("evaluation.every_steps", 3),
        ("checkpoints.every_steps", 2),
        ("training.tokens_per_update", 800),
        ("schedule.peak", 0.01),
        ("optimizer.average_decay", 0.9),
        ("model.dropout", 0.3),
    ],
)
def test_a_line_for_the_recipe_gives_the_run_the_value_that_is_meant(text, key, value):
    """Recipes with larger updates are converted, so that they have to say something else."""
    larger = ["sync.mode=accumulate", "sync.accumulate=4"]
    config = parse_config(text, "x.toml", larger)
    line = as_before_accumulation(config, key, value)
    section, _, name = key.partition(".")
    read = parse_config(text, "x.toml", [*larger, f"{key}={line}"])
    assert getattr(getattr(read, section), name) == pytest.approx(value)
    exact = parse_config(text, "x.toml")
    assert as_before_accumulation(exact, key, value) == value


def test_the_average_of_larger_updates_is_of_as_many_tokens(text):
    changes = ["sync.mode=accumulate", "sync.accumulate=2", "optimizer.average_decay=0.9"]
    assert parse_config(text, "x.toml", changes).optimizer.average_decay == pytest.approx(0.81)


@pytest.mark.parametrize("key", ["webhook_variable", "webhook"])
def test_the_address_of_a_webhook_is_refused_and_not_repeated(text, key):
    message = refused(text, overrides={f"notify.{key}": "https://host/secret"})
    assert "notify.webhook_variable" in message
    assert "secret" not in message


def test_notifications_are_off_unless_asked_for(text):
    settings = {"notify.command": ["true", "x"], "notify.on": ["end"]}
    on = parse_config(text, origin="x.toml", overrides=settings)
    assert not parse_config(text, origin="x.toml").notify.is_on
    assert on.notify.is_on
    assert parse_config(dump_config(on), origin="x.toml") == on
    assert "notify.on.0 = 'often' should be" in refused(text, overrides={"notify.on": ["often"]})
