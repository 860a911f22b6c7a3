import pytest

from dragoman.serve.limits import RefusedError
from dragoman.serve.security import HEADERS, check_key, is_from_here, is_loopback


@pytest.mark.parametrize("given", [None, "", "secre", "secret ", "é", "\ud800"])
def test_wrong_keys_are_refused(given):
    with pytest.raises(RefusedError) as refused:
        check_key(given, "secret")
    assert refused.value.status == 403


def test_the_right_key_passes_and_without_one_everybody_does():
    check_key("sécret", "sécret")
    check_key(None, "")
    check_key("any", "")


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere():
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("example.org", False),
    ],
)
def test_loopback_is_known(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("client", "host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1:5000", True),
        ("127.0.0.1", "localhost", True),
        ("::1", "[::1]:5000", True),
        ("127.0.0.1", "evil.example:5000", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[", False),
        ("192.168.1.5", "127.0.0.1:5000", False),
        ("", "localhost", False),
    ],
)
def test_a_request_from_here_has_an_address_and_a_name_of_this_machine(client, host, expected):
    assert is_from_here(client, host) is expected
