import pytest

from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.recipes import recipes_folder, shipped_recipe


def test_a_shipped_recipe_can_be_read_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_config(shipped_recipe("demo")).name == "demo"


def test_a_recipe_below_the_working_folder_has_a_short_name(monkeypatch):
    monkeypatch.chdir(recipes_folder().parent)
    assert str(shipped_recipe("demo")) == f"{recipes_folder().name}/demo.toml"


def test_a_recipe_that_did_not_come_is_named():
    with pytest.raises(UserError, match="no-such-recipe"):
        shipped_recipe("no-such-recipe")
