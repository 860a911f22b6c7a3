import pytest

from dragoman.distributed.interfaces import bind_to_interface_towards, interface_between_ranks

CHOICES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    for name in CHOICES:
        monkeypatch.setenv(name, "")  # so that it is put back, whatever is set meanwhile
        monkeypatch.delenv(name)


def test_the_interface_is_the_one_that_leads_to_rank_0():
    assert interface_between_ranks() is None
    bind_to_interface_towards("127.0.0.1", 29500)
    assert interface_between_ranks() == "lo"


def test_what_the_user_has_chosen_stays(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "ib0")
    bind_to_interface_towards("127.0.0.1", 29500)
    assert interface_between_ranks() == "ib0"


def test_a_name_that_nobody_knows_chooses_nothing():
    bind_to_interface_towards("no-such-host.invalid", 29500)
    assert interface_between_ranks() is None


@pytest.mark.parametrize(("said", "name"), [("=eth1", "eth1"), ("eth0,eth1", "eth0"), ("=", None)])
def test_the_way_in_which_nccl_is_told_is_understood(monkeypatch, said, name):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", said)
    assert interface_between_ranks() == name
