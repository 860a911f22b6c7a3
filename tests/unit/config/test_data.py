from pathlib import Path


def test_downloads_are_in_the_folder_that_is_named_or_in_that_of_the_user(
    digits_config, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = digits_config.data.model_copy(update={"cache": ""})
    assert data.cache_folder == tmp_path / "dragoman"
    named = data.model_copy(update={"cache": "/elsewhere"})
    assert named.cache_folder == Path("/elsewhere")
