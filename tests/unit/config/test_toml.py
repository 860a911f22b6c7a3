import os
from pathlib import Path

import pytest
from unit.config.refusal import refused

from dragoman.config import load_config, parse_config
from dragoman.errors import ConfigError


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


def test_toml_that_python_cannot_hold_is_one_sentence(text):
    assert "nested too deeply" in refused("x = " + "[" * 5000)
    assert refused("x = 1" + "0" * 5000).endswith("a number has too many digits; shorten it")
    many = "".join(f"key{number} = 1\n" for number in range(1000))
    assert "and 995 more problem(s)" in refused(many + text)
    assert "unknown key 'line\\nfeed'" in refused('"line\\nfeed" = 1\n' + text)


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
