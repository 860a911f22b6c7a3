import pytest
from object_server import KEY, SECRET, refusing_server

from dragoman.errors import RemoteError
from dragoman.storage.address import parse_address
from dragoman.storage.failures import failure_of
from dragoman.storage.store import Store


@pytest.mark.parametrize(
    ("status", "code", "kind", "advice"),
    [
        (403, "AccessDenied", "permission", "grant"),
        (403, "RequestTimeTooSkewed", "clock", "set the clock"),
        (403, "SignatureDoesNotMatch", "credentials", "clock"),
        (403, "InvalidAccessKeyId", "credentials", "AWS_*"),
        (400, "ExpiredToken", "credentials", "AWS_*"),
        (401, "Unauthorized", "credentials", "AWS_*"),
        (403, "QuotaExceeded", "full", "quota"),
        (507, "XMinioStorageFull", "full", "quota"),
        (404, "NoSuchBucket", "no bucket", "create it"),
        (404, "NoSuchKey", "missing", "check the address"),
        (301, "PermanentRedirect", "region", "AWS_REGION"),
        (400, "Whatever", "refused", "check the address"),
    ],
)
def test_every_refusal_becomes_a_sentence_without_the_stores_own_words(
    status, code, kind, advice, reach, hasty
):
    with refusing_server(status, code) as refusal:
        reach(refusal.port)
        store = Store(parse_address("s3://bucket/runs"), hasty)
        with pytest.raises(RemoteError) as caught:
            store.upload("a", b"content")
    assert caught.value.kind == kind
    assert advice in str(caught.value)
    assert "s3://bucket/runs/a" in str(caught.value)
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_named(reach, hasty, bare):
    reach(9)  # nobody listens at the port for discarding
    store = Store(parse_address("s3://bucket/runs"), hasty)
    with pytest.raises(RemoteError, match=r"127\.0\.0\.1:9 \(AWS_ENDPOINT_URL\)") as caught:
        store.read("a")
    assert caught.value.kind == "unreachable"
    bare.setenv("AWS_ENDPOINT_URL", "http://somebody:geheim@no-such-host.invalid")
    store = Store(parse_address("s3://bucket/runs"), hasty)
    with pytest.raises(RemoteError, match=r"no-such-host\.invalid") as caught:
        store.read("a")
    assert "geheim" not in str(caught.value)


def test_a_server_without_encryption_must_be_allowed(server_port, reach, bare, hasty):
    reach(server_port)
    bare.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(RemoteError, match="AWS_ALLOW_HTTP") as caught:
        Store(parse_address("s3://bucket/runs"), hasty).read("a")
    assert caught.value.kind == "insecure"


def test_unknown_errors_are_named_by_their_kind_alone():
    error = failure_of(parse_address("gs://bucket/x"), "reading", ValueError("token geheim"))
    assert "geheim" not in str(error)
    assert "ValueError" in str(error)
    assert "GOOGLE_*" in str(error)
