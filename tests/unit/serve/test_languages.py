import pytest

from dragoman.serve.languages import name_of


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("en", "English"),
        ("nb", "Norwegian Bokmål"),
        ("zh-Hans", "Chinese (Hans)"),
        ("de_AT", "German (AT)"),
        ("xx", "xx"),
    ],
)
def test_languages_have_their_english_names_and_unknown_ones_their_code(code, name):
    assert name_of(code) == name
