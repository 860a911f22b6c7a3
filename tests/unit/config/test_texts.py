import pytest
from unit.config.refusal import refused

from dragoman.config import parse_config


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("telemetry.mlflow", "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"),
        ("data.mirror", "fetch the file yourself"),
    ],
)
@pytest.mark.parametrize("address", ["https://me:hunter2@host:5000/x", "http://hunter2@host"])
def test_a_password_in_an_address_is_refused_and_not_repeated(text, key, advice, address):
    message = refused(text, overrides=[f"{key}={address}"])
    assert f"{key}: an address with a user name or password" in message
    assert advice in message
    assert "hunter2" not in message


def test_an_address_may_have_an_at_sign_in_its_path(text):
    parse_config(text, origin="x", overrides=["telemetry.mlflow=https://host/x@y?z=a@b"])
