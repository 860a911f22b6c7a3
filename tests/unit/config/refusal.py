"""What is wrong with a recipe, as its reader is told."""

import pytest

from dragoman.config import parse_config
from dragoman.errors import ConfigError


def refused(text, **more):
    with pytest.raises(ConfigError) as caught:
        parse_config(text, origin="x.toml", **more)
    message = str(caught.value)
    assert "\n" not in message
    return message
