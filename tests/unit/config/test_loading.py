import re
from pathlib import Path

import pytest
from unit.config.refusal import refused

from dragoman.config import dump_config, load_config, parse_config
from dragoman.errors import ConfigError


def test_relative_paths_begin_at_the_folder_of_their_recipe(digits, tmp_path, monkeypatch):
    recipe = tmp_path / "recipes" / "mine.toml"
    recipe.parent.mkdir()
    text = digits.read_text(encoding="utf-8")
    text = re.sub("(?m)^(folder|prepared) = .*$", "", text)
    recipe.write_text(
        text.replace("[tokenizer]", '[tokenizer]\nmodel = "../given.model"')
        .replace("[checkpoints]", '[checkpoints]\nmemory_folder = "/dev/shm"')
        .replace("[telemetry]", '[telemetry]\nmlflow = "file:mlruns"')
        + '\n[notify]\ncommand = ["./tell.sh", "./x"]\n'
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    config = load_config(Path("../recipes/mine.toml"))

    assert config.data.folder == str(recipe.parent)
    assert config.tokenizer.model == str(tmp_path / "given.model")
    assert config.notify.command == (str(recipe.parent / "tell.sh"), "./x")
    assert config.checkpoints.memory_folder == "/dev/shm"
    assert config.telemetry.mlflow == f"file:{recipe.parent}/mlruns"
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


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ("file:mlruns", "file:/a%20b/recipes/mlruns"),
        ("file:../my%20runs", "file:/a%20b/my%20runs"),
        ("file:/srv/mlruns", "file:/srv/mlruns"),
        ("file:///srv/mlruns", "file:///srv/mlruns"),
        ("http://server:5000", "http://server:5000"),
        ("databricks", "databricks"),
        ("", ""),
    ],
)
def test_a_folder_of_mlflow_is_an_address_of_a_path_in_the_recipe(text, value, becomes):
    text = text.replace("[telemetry]", f'[telemetry]\nmlflow = "{value}"')
    config = parse_config(text, "x.toml", folder=Path("/a b/recipes"))
    assert config.telemetry.mlflow == becomes


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


def test_a_dumped_config_reads_back_equal(digits_config):
    again = parse_config(dump_config(digits_config), "again")
    assert again == digits_config
    assert dump_config(again) == dump_config(digits_config)
