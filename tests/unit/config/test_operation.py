import pytest
from unit.config.refusal import refused

from dragoman.config import dump_config, parse_config


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
