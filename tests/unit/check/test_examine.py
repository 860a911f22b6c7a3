"""Hosts that are made up describe and time themselves."""

import time

import pytest

from dragoman.check.examine import described, examined, lost_findings, ready_of
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.network import Interface
from dragoman.config import dump_config
from dragoman.errors import RunError, UserError

NAMES = ("a", "b")
CLUSTER = Cluster(hosts=tuple(Host(name=name, price_per_hour=1.5) for name in NAMES))


class Made:
    """A session with an answer for each order; an exception is raised."""

    def __init__(self, name, **changes):
        self.name, self.host, self.loss = name, Host(name=name), None
        self.asked = []
        self.answers = {
            "describe": description(),
            "load": {"processor_share": 0.1, "steal_share": 0.0, "processes": [],
                     "sent_bytes_per_s": 0.0, "received_bytes_per_s": 0.0},
            "warm up": {},
            "wait": {},
            "disk": {"bytes_per_s": 2e8},
            "compute": {"workers": [{"flops_per_s": 1e10}]},
        } | changes  # fmt: skip

    def ask(self, order, within_s, **details):
        self.asked.append(order)
        if order == "clock" and order not in self.answers:
            return {"heard_at": time.time() + 40, "answered_at": time.time() + 40}
        answer = self.answers[order]
        if isinstance(answer, RunError):
            if "hangs" in str(answer):
                self.loss = answer
            raise answer
        return answer


def description(**changes):
    facts = {
        "hostname": "a", "folder": "/f", "version": "1", "code": "c", "python": "3.11.7",
        "torch": "2.13.0", "cuda_devices": 0, "cores": 4, "interfaces": [["eth0", "10.0.0.1", 24]],
        "free_bytes": 10**9, "data": "h",
    }  # fmt: skip
    return {
        "facts": facts, "links": {"eth0": 125e6}, "processor": "EPYC", "memory_bytes": 8000,
        "free_bytes": 5 * 10**9, "config": None, "driver": None, "gpus": [],
    } | changes  # fmt: skip


def run(sessions, config=None, short=False, workers=None):
    descriptions, lost = described(sessions, None, "")

    def choose(alive, facts):
        return {name: Interface("eth0", "10.0.0.1", 24) for name in facts}

    ready = ready_of(CLUSTER, descriptions, choose, "auto", workers)
    hosts, later = examined(
        {n: sessions[n] for n in descriptions},
        descriptions,
        ready,
        config,
        short,
        lambda text: None,
    )
    return hosts, lost | later


def made(**changes):
    return {name: Made(name, **changes.get(name, {})) for name in NAMES}


def test_all_that_a_host_measures_becomes_facts():
    hosts, lost = run(made())
    assert lost == {}
    facts = hosts["a"].facts
    assert facts.gemm_flops_per_s == 1e10
    assert facts.disk_bytes_per_s == 2e8
    assert facts.clock_offset_s == pytest.approx(40, abs=1)
    assert facts.link_bytes_per_s == 125e6
    assert facts.free_disk_bytes == 5 * 10**9
    assert facts.price_per_hour == 1.5
    assert facts.data_hash == "h"


def test_workers_share_the_memory_of_a_host():
    hosts, _ = run(made(), workers=2)
    assert (hosts["a"].facts.workers, hosts["a"].facts.device_memory_bytes) == (2, 4000)


def test_absurd_numbers_of_workers_are_refused():
    with pytest.raises(UserError, match="1000000 workers"):
        run(made(), workers=1_000_000)


def test_a_gpu_is_known_from_nvml_and_from_what_computed():
    facts = description()["facts"] | {"cuda_devices": 1}
    gpu = {"number": 0, "name": "T4", "memory_bytes": 16, "slowdowns": [], "ecc_errors": 2}
    answer = description(facts=facts, gpus=[gpu], driver="550")
    worker = {"flops_per_s": 8e12, "device": "Tesla T4", "memory_bytes": 15}
    changed = {"describe": answer, "compute": {"workers": [worker]}}
    hosts, _ = run(made(a=changed, b=changed))
    assert (hosts["a"].facts.device, hosts["a"].facts.device_memory_bytes) == ("Tesla T4", 15)
    assert hosts["a"].facts.driver == "550"
    assert hosts["a"].gpus == (gpu,)


def test_a_host_without_a_description_is_lost_and_the_other_goes_on():
    hosts, lost = run(made(b={"describe": RunError("b: gone")}))
    assert set(hosts) == {"a"}
    assert set(lost) == {"b"}
    (finding,) = lost_findings(lost)
    assert (finding.hosts, finding.verdict) == (("b",), "unfit")


def test_a_host_that_hangs_is_asked_for_nothing_more():
    sessions = made(b={"load": RunError("b: hangs")})
    hosts, lost = run(sessions)
    assert set(lost) == {"b"}
    assert "disk" not in sessions["b"].asked
    assert hosts["a"].facts.gemm_flops_per_s


def test_a_disk_or_a_device_that_fails_is_a_fact_about_the_host():
    changes = {"disk": RunError("b: full"), "wait": RunError("b: no torch")}
    sessions = made(b=changes)
    hosts, lost = run(sessions)
    assert lost == {}
    assert hosts["b"].disk_error == "full"
    assert hosts["b"].facts.gemm_flops_per_s is None
    assert "compute" not in sessions["b"].asked


def test_a_short_check_compares_clocks_and_leaves_out_the_rest():
    sessions = made()
    hosts, _ = run(sessions, short=True)
    assert set(sessions["a"].asked) == {"describe", "clock"}
    assert hosts["a"].facts.gemm_flops_per_s is None


def test_a_run_of_other_settings_is_found(digits_config):
    model = digits_config.model.model_copy(update={"dropout": 0.3})
    other = dump_config(digits_config.model_copy(update={"model": model}))
    same = dump_config(digits_config)
    sessions = made(
        a={"describe": description(config=same)}, b={"describe": description(config=other)}
    )
    hosts, _ = run(sessions, digits_config)
    assert hosts["a"].other_config == ()
    assert hosts["b"].other_config == ("model.dropout",)
    torn = made(b={"describe": description(config="not toml [")})
    assert run(torn, digits_config)[0]["b"].other_config == ("it cannot be read",)
