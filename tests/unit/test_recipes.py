import pytest

from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.recipes import SHIPPED, recipes_folder, shipped_recipe


def test_a_shipped_recipe_can_be_read_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_config(shipped_recipe("demo")).name == "demo"


def test_paths_of_a_shipped_recipe_begin_where_it_is_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for recipe in ("multi30k", recipes_folder() / "multi30k.toml"):
        assert load_config(recipe).data.folder == str(tmp_path / "data" / "multi30k")
    own = tmp_path / "own" / "multi30k.toml"
    own.parent.mkdir()
    own.write_text((recipes_folder() / "multi30k.toml").read_text(encoding="utf-8"))
    assert load_config(own).data.folder == str(own.parent / "data" / "multi30k")


def test_relative_paths_of_an_old_run_begin_at_the_current_folder(tmp_path, monkeypatch):
    run = tmp_path / "runs" / "old"
    run.mkdir(parents=True)
    text = (recipes_folder() / "multi30k.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert load_config(run / "config.toml").data.folder == str(run / "data" / "multi30k")
    (run / "run-id").write_text("ab12")
    assert load_config(run / "config.toml").data.folder == str(tmp_path / "data" / "multi30k")


def test_a_folder_does_not_hide_the_shipped_recipe_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "multi30k").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_config("multi30k").name == "multi30k"


@pytest.mark.parametrize("typed", ["mutli30k", "Multi30k", "recipes/mutli30k.toml"])
def test_a_recipe_that_is_not_there_is_refused_with_the_shipped_one_that_may_be_meant(
    typed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"no such recipe.*did you mean multi30k") as refused:
        load_config(typed)
    assert all(name in str(refused.value) for name in SHIPPED)


def test_a_name_that_is_too_long_for_a_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="File name too long"):
        load_config("x" * 300)


def test_all_recipes_of_the_folder_are_known_as_shipped():
    assert sorted(path.stem for path in recipes_folder().glob("*.toml")) == sorted(SHIPPED)


def test_a_recipe_below_the_working_folder_has_a_short_name(monkeypatch):
    monkeypatch.chdir(recipes_folder().parent)
    assert str(shipped_recipe("demo")) == f"{recipes_folder().name}/demo.toml"


def test_a_recipe_that_did_not_come_is_named():
    with pytest.raises(UserError, match="no-such-recipe"):
        shipped_recipe("no-such-recipe")
