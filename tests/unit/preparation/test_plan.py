import pytest

from dragoman.errors import UserError
from dragoman.preparation import prepare
from dragoman.preparation.plan import make_plan


def test_a_changed_setting_redoes_what_follows_from_it_alone(recipe):
    def stages(*overrides):
        plan = make_plan(recipe(*overrides))
        return {name: getattr(plan, name).folder.name for name in NAMES}

    NAMES = ("clean", "held_out", "kept", "tokenizer", "shards")
    before = stages()

    def changed(*overrides):
        return {name for name, folder in stages(*overrides).items() if folder != before[name]}

    assert changed("training.seed=5", "model.dropout=0.3") == set()
    assert changed("data.max_length=50") == {"shards"}
    assert changed("tokenizer.vocabulary=50") == {"tokenizer", "shards"}
    assert changed("cleaning.drop_leaks=true") == {"kept", "tokenizer", "shards"}
    assert changed("cleaning.max_ratio=3.0") == {"clean", "kept", "tokenizer", "shards"}


def test_stages_that_no_longer_count_are_swept(recipe):
    prepare(recipe())
    prepared = prepare(recipe("tokenizer.vocabulary=50"))
    folders = {path.name.rsplit("-", 1)[0] for path in prepared.folder.iterdir() if path.is_dir()}
    assert sorted(folders) == ["clean", "held-out", "index", "kept", "shards", "tokenizer"]
    assert len([path for path in prepared.folder.iterdir() if path.is_dir()]) == 6


def test_files_that_have_moved_are_known_by_their_names(recipe, digits, tmp_path):
    """Prepared data serves on a machine that has the text in another folder, or not at all."""
    before = prepare(recipe()).passport
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = recipe(f"data.folder={elsewhere}")
    assert prepare(moved).passport.key == before.key

    (elsewhere / "train.en").write_text("other\n" * 800)
    plan = make_plan(moved)
    assert plan.shards.folder.name != before.key
    assert {file.path for file in plan.inputs} == {
        str(elsewhere / f"{split}.{language}")
        for split in ("train", "valid", "test")
        for language in ("en", "de")
    }


def test_a_file_that_is_not_there_is_named_with_the_key_that_names_it(recipe, tmp_path):
    missing = tmp_path / "missing.model"
    with pytest.raises(UserError, match=r"^tokenizer\.model = .*missing\.model': no such file"):
        make_plan(recipe(f"tokenizer.model={missing}"))
    (tmp_path / "train.en").unlink()
    with pytest.raises(UserError, match=r"train\.en: no such file.*data\.folder"):
        make_plan(recipe())
