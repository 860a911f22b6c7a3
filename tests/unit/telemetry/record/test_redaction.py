import pytest

from dragoman.telemetry.record.redaction import redacted, secret_values


def test_a_login_in_an_address_is_hidden_and_the_rest_stays():
    text = "fetching https://me:pa55@example.org/a@b and http://x.org/c from user@host"
    shown = "fetching https://***@example.org/a@b and http://x.org/c from user@host"
    assert redacted(text) == shown


def test_secrets_are_hidden_wherever_they_stand():
    secrets = secret_values({"HOOK": "https://x.org/T0/abc", "API_TOKEN": "abc/defgh"}, ["HOOK"])
    assert redacted("POST https://x.org/T0/abc: abc/defgh", secrets) == "POST ***: ***"


@pytest.mark.parametrize(
    "name",
    [
        *("WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_PASSWORD"),
        *("DRAGOMAN_SECRET", "DRAGOMAN_WEBHOOK", "SLACK_WEBHOOK_URL", "apikey"),
    ],
)
def test_variables_whose_names_say_so_are_secret(name):
    assert secret_values({name: "0123456789"}) == ["0123456789"]


def test_other_variables_and_ordinary_words_are_not():
    variables = {"HOME": "/home/someone", "TOKENIZERS_PARALLELISM": "something", "A_TOKEN": "1"}
    assert secret_values(variables) == []


def test_the_longer_of_two_is_hidden_first():
    secrets = secret_values({"A_TOKEN": "12345678", "B_TOKEN": "1234567890"})
    assert redacted("1234567890", secrets) == "***"
