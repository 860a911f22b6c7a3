"""Workers on real hosts rehearse a recipe: their links are limited, cut and killed."""

import os
import signal
import sys
import threading
import time

import pytest
import tomli_w
from labs import lab
from processes import wait_until

from dragoman.check import rehearsal
from dragoman.check.rehearsal import rehearse
from dragoman.cluster.hosts import load_cluster
from dragoman.cluster.preflight import preflight
from dragoman.errors import DragomanError, RunError

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def three_hosts(host_list):
    cluster = load_cluster(str(host_list(3)))
    return cluster, preflight(cluster, "prepared/digits", "cpu", None)


@pytest.fixture
def config(digits_config):
    training = digits_config.training.model_copy(update={"micro_batch_tokens": 150})
    return digits_config.model_copy(update={"training": training})


def test_workers_of_three_hosts_measure_and_leave_nothing(
    three_hosts, config, processes_of, tmp_path
):
    cluster, ready = three_hosts
    collective, computing = rehearse(cluster, ready, config, lambda: False, 8.0)
    assert [each.host for each in computing] == ["node1", "node2", "node3"]
    assert collective.ranks == 3
    assert len(collective.whole_step_s) >= 1
    for number in (1, 2, 3):
        assert not [*(tmp_path / f"node{number}").iterdir()]
        assert not processes_of(f"node{number}")


@pytest.mark.parametrize(("how", "sign"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_a_host_that_dies_or_hangs_is_named_and_nothing_is_left(
    three_hosts, config, processes_of, monkeypatch, how, sign
):
    cluster, ready = three_hosts
    monkeypatch.setattr(rehearsal, "START_S", 12.0)

    def disturb():
        wait_until(lambda: any("zygote" in words for words in processes_of("node2").values()))
        for pid, words in processes_of("node2").items():
            if "zygote" in words:
                os.kill(pid, sign)

    thread = threading.Thread(target=disturb)
    thread.start()
    with pytest.raises(DragomanError) as refused:
        rehearse(cluster, ready, config, lambda: False, 0.5)
    thread.join()
    assert "node2" in str(refused.value)
    assert "\n" not in str(refused.value)
    wait_until(lambda: not any(processes_of(f"node{n}") for n in (1, 2, 3)), 30)


def test_a_user_who_stops_waits_for_nobody(three_hosts, config, processes_of):
    cluster, ready = three_hosts
    ends_at = time.monotonic() + 2.0
    with pytest.raises(RunError, match="stopped"):
        rehearse(cluster, ready, config, lambda: time.monotonic() > ends_at)
    wait_until(lambda: not any(processes_of(f"node{n}") for n in (1, 2, 3)), 30)


def test_sums_pass_at_the_rate_of_the_link(config, tmp_path):
    model = config.model.model_copy(update={"width": 128, "filter": 1024, "encoder_layers": 4})
    config = config.model_copy(update={"model": model})
    with lab(nodes=2, rate="20mbit") as it:
        hosts = [
            {
                "name": node.name,
                "address": str(node.address),
                "folder": str(tmp_path / node.name),
                "python": sys.executable,
            }
            for node in (it.node("node1"), it.node("node2"))
        ]
        path = tmp_path / "slow.toml"
        path.write_text(tomli_w.dumps({"ssh_config": str(it.ssh_config), "hosts": hosts}))
        cluster = load_cluster(str(path))
        ready = preflight(cluster, "prepared/digits", "cpu", None)
        collective, _ = rehearse(cluster, ready, config, lambda: False, 4.0)
    # Between two hosts each sends all that it has once.
    passed = 4 * collective.elements / min(collective.seconds)
    assert passed == pytest.approx(20e6 / 8, rel=0.15)
