import pytest

from dragoman.errors import UserError
from dragoman.storage.address import parse_address
from dragoman.storage.credentials import allows_http, check_credentials, storage_variables


@pytest.mark.parametrize(
    ("address", "variables", "missing"),
    [
        ("s3://bucket/x", {}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket/x", {"AWS_ACCESS_KEY_ID": "geheim"}, "set AWS_SECRET_ACCESS_KEY"),
        # What a cloud's machines would be given by their metadata service.
        ("s3://bucket/x", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://x"}, "AWS_ACCESS_KEY_ID"),
        ("gs://bucket/x", {}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az://container/x", {"AZURE_STORAGE_ACCOUNT_NAME": "a"}, "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_missing_credentials_are_named(address, variables, missing):
    with pytest.raises(UserError) as caught:
        check_credentials(parse_address(address), variables)
    assert missing in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "variables"),
    [
        ("s3://bucket/x", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}),
        ("s3://bucket/x", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/f", "AWS_ROLE_ARN": "r"}),
        ("s3://bucket/x", {"AWS_SKIP_SIGNATURE": "True"}),
        ("gs://bucket/x", {"GOOGLE_APPLICATION_CREDENTIALS": "/f"}),
        ("https://host/x", {}),
        ("file:///x", {}),
    ],
)
def test_what_is_enough_is_taken(address, variables):
    check_credentials(parse_address(address), variables)


def test_only_what_concerns_stores_is_passed_on():
    found = storage_variables({"AWS_REGION": "r", "GOOGLE_X": "g", "AZURE_Y": "a", "HOME": "/h"})
    assert sorted(found) == ["AWS_REGION", "AZURE_Y", "GOOGLE_X"]


def test_encryption_is_given_up_only_where_somebody_says_so():
    assert not allows_http(parse_address("s3://bucket/x"), {})
    assert allows_http(parse_address("s3://bucket/x"), {"AWS_ALLOW_HTTP": "true"})
    assert not allows_http(parse_address("gs://bucket/x"), {"AWS_ALLOW_HTTP": "true"})
    assert not allows_http(parse_address("https://host/x"), {})
    assert allows_http(parse_address("http://host/x"), {})
