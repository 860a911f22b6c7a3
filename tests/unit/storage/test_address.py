import pytest

from dragoman.errors import UserError
from dragoman.storage.address import is_address, parse_address


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("s3://bucket/runs/x", ("s3", "bucket", "runs/x")),
        ("S3://bucket/runs/x/", ("s3", "bucket", "runs/x")),
        ("gs://bucket", ("gs", "bucket", "")),
        ("az://container/a b", ("az", "container", "a b")),
        ("https://example.org:8443/a%20b/c", ("https", "example.org:8443", "a b/c")),
        ("file:///srv/runs", ("file", "", "srv/runs")),
    ],
)
def test_an_address_is_taken_apart(text, parts):
    found = parse_address(text)
    assert (found.scheme, found.host, found.path) == parts


def test_addresses_are_joined_and_written_again():
    runs = parse_address("s3://bucket/runs")
    assert str(runs / "x" / "config.toml") == "s3://bucket/runs/x/config.toml"
    assert (runs / "x").parent == runs
    assert (runs / "x").name == "x"
    assert str(parse_address("s3://bucket") / "x") == "s3://bucket/x"
    assert str(parse_address("file:///srv/runs").folder) == "/srv/runs"


@pytest.mark.parametrize(
    "text", ["s3://", "s3:///runs", "runs/x", "ftp://host/x", "s3://bucket/../x", "s3://b//x"]
)
def test_what_is_no_address_is_refused_with_how_to_write_one(text):
    with pytest.raises(UserError):
        parse_address(text)


@pytest.mark.parametrize("text", ["file://host/x", "file://", "s3://bu cket/x", "s3://bucket/\x1b"])
def test_other_mistakes_are_refused_too(text):
    with pytest.raises(UserError):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIAKEY:geheim@bucket/runs",
        "https://host/file?X-Amz-Signature=geheim",
        "az://container/x#geheim",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(text):
    with pytest.raises(UserError) as caught:
        parse_address(text)
    assert "geheim" not in str(caught.value)
    assert "environment" in str(caught.value)


def test_paths_are_no_addresses():
    assert is_address("s3://bucket/x")
    assert is_address("ftp://host")
    assert not is_address("runs/x")
    assert not is_address("/runs/x")
