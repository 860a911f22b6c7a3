import pytest
from pydantic import ValidationError

from dragoman.config import Config, config_keys, toml_value


def test_a_config_is_frozen(digits_config):
    with pytest.raises(ValidationError):
        digits_config.name = "other"


def test_every_key_is_documented():
    undocumented = [key for key, _, meaning in config_keys() if not meaning]
    assert undocumented == []
    assert len({key for key, _, _ in config_keys()}) > 40
    assert Config.model_fields["name"].description


def test_bounds_are_told_with_the_keys():
    meanings = {key: meaning for key, _, meaning in config_keys()}
    assert meanings["decoding.beam"].startswith("A number from 1 to 100. ")
    assert meanings["training.hours"].startswith("A number above 0 and at most 1,000,000. ")


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.1, "0.1"), (True, "true"), ("a", '"a"'), ((1,), "[\n    1,\n]")],
)
def test_a_value_is_written_as_in_a_recipe(value, written):
    assert toml_value(value) == written
