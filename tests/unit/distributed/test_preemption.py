"""A server in this process stands in for the metadata services; no real one is ever asked."""

import socket
import threading

import pytest
from metadata_service import ACTION, PREEMPTED, STOP, TOKEN, metadata_service
from processes import wait_until

from dragoman.config import PreemptionSettings, parse_config
from dragoman.distributed import preemption as notices_module
from dragoman.distributed.preemption import aws, google, notices
from dragoman.errors import ConfigError
from dragoman.training.claim import incompatible_changes, shared_settings

AWS_NOTICE = "AWS will stop this host at 2026-11-16T00:12:00Z"


@pytest.fixture
def service():
    with metadata_service() as running:
        yield running


@pytest.fixture
def watch(service):
    """Open `notices` on the service; the list fills with what was noticed."""

    def opened(cloud):
        heard = []
        settings = PreemptionSettings(
            cloud=cloud, metadata_address=service.address, poll_every_s=0.01
        )
        return heard, notices(settings, heard.append)

    return opened


def test_nobody_is_asked_unless_the_config_names_a_cloud(service, watch):
    threads = threading.active_count()
    heard, watching = watch("none")
    with watching:
        assert threading.active_count() == threads
    assert (heard, service.asked) == ([], [])
    assert PreemptionSettings().cloud == "none"


def test_aws_is_asked_with_one_token_until_there_is_a_notice(service, watch):
    heard, watching = watch("aws")
    with watching:
        wait_until(lambda: service.count(ACTION) >= 3)
        assert heard == []
        service.notice = STOP
        wait_until(lambda: heard)
    assert heard == [AWS_NOTICE]
    assert service.asked[:3] == [("PUT", TOKEN), ("GET", ACTION), ("GET", ACTION)]
    assert service.tokens_given == 1


def test_a_notice_is_told_once_and_ends_the_questions(service, watch):
    service.notice = STOP
    heard, watching = watch("aws")
    with watching:
        wait_until(lambda: not any(t.name == "notices" for t in threading.enumerate()))
    assert heard == [AWS_NOTICE]
    assert service.count(ACTION) == 1


def test_a_token_that_has_run_out_is_renewed_at_once(service):
    ask = aws(service.address)
    assert ask() is None
    service.token = "another"
    service.notice = '{"action": "terminate", "time": "2026-11-16T00:12:00Z"}'
    assert ask() == "AWS will terminate this host at 2026-11-16T00:12:00Z"
    assert service.tokens_given == 2


def test_a_token_that_is_never_good_is_an_error_and_no_endless_renewal(service):
    service.errors[ACTION] = 401
    with pytest.raises(ValueError, match="HTTP 401"):
        aws(service.address)()
    assert service.tokens_given == 2


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", '{"action": "stop"}', "3"])
def test_an_answer_of_aws_that_says_nothing_is_no_notice(service, text):
    service.notice = text
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own among them
        aws(service.address)()


def test_only_a_missing_action_means_none(service):
    """A service without tokens is not the one that was meant."""
    service.errors[TOKEN] = 404
    with pytest.raises(ValueError, match="HTTP 404"):
        aws(service.address)()


def test_google_says_true(service, watch):
    heard, watching = watch("google")
    with watching:
        wait_until(lambda: service.count(PREEMPTED) >= 2)
        assert heard == []
        service.preempted = "TRUE"
        wait_until(lambda: heard)
    assert heard == ["Google will stop this host within 30 s"]
    assert {method for method, _ in service.asked} == {"GET"}


@pytest.mark.parametrize(("flavor", "said"), [("", "TRUE"), ("Google", "<html>log in</html>")])
def test_who_answers_but_is_not_google_is_not_believed(service, flavor, said):
    service.flavor, service.preempted = flavor, said
    with pytest.raises(ValueError, match="the answer"):
        google(service.address)()


def test_a_failing_service_is_told_once_and_asked_on(service, watch, caplog):
    service.errors[ACTION] = 500
    heard, watching = watch("aws")
    with watching:
        wait_until(lambda: service.count(ACTION) >= 4)
        service.errors.clear()
        service.notice = STOP
        wait_until(lambda: heard)
    assert heard == [AWS_NOTICE]
    (told,) = caplog.messages
    assert "preemption.cloud = aws" in told
    assert "HTTP 500" in told


def test_a_service_that_never_answers_is_given_up_and_asked_again(
    service, watch, caplog, monkeypatch
):
    monkeypatch.setattr(notices_module, "ANSWER_S", 0.1)
    service.silent = True
    heard, watching = watch("google")
    with watching:
        wait_until(lambda: service.count(PREEMPTED) >= 2)
        service.silent = False
        service.preempted = "TRUE"
        wait_until(lambda: heard)
    assert "nothing in 0.1 s" in caplog.text


def test_a_service_that_is_not_there_holds_up_nothing(watch, service, caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        service.address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        heard, watching = watch("aws")
        with watching:
            wait_until(lambda: "Connection refused" in caplog.text)
    assert heard == []


def test_no_proxy_is_asked(service, monkeypatch):
    """It would be asked about the host it runs on, if it could reach the address at all."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    service.preempted = "TRUE"
    assert google(service.address)() == "Google will stop this host within 30 s"


def test_no_redirect_is_followed(service):
    """Not even to where a good answer would be, and the token stays here."""
    with metadata_service() as elsewhere:
        elsewhere.preempted = "TRUE"
        service.redirect = elsewhere.address + PREEMPTED
        with pytest.raises(ValueError, match="HTTP 302"):
            google(service.address)()
        with pytest.raises(ValueError, match="HTTP 302"):
            aws(service.address)()
        assert elsewhere.asked == []


@pytest.mark.parametrize("address", ["file:///etc/passwd", "127.0.0.1:80", "http://a/b"])
def test_an_address_is_one_of_http(digits, address):
    with pytest.raises(ConfigError, match=r"preemption\.metadata_address"):
        parse_config(digits.read_text(), "x", [f"preemption.metadata_address={address}"])


def test_hosts_of_different_clouds_agree_and_may_change_between_attempts(digits):
    one, other = (
        parse_config(digits.read_text(), "x", [f"preemption.cloud={cloud}"])
        for cloud in ("aws", "google")
    )
    assert shared_settings(one) == shared_settings(other)
    assert incompatible_changes(one, other) == []
