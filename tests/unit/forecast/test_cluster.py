import numpy as np
import pytest

from dragoman.forecast import cluster
from dragoman.forecast.cluster import (
    Failures,
    Stragglers,
    Topology,
    Way,
    network_of,
    runs_with_failures,
    slowest_of,
)

RACK, RACKS, SITES = Way(1e9, 1e-5), Way(4e9, 2e-5), Way(1e8, 1e-2)
FLAT = Topology(1, 1, 8, 4, RACK, RACKS, SITES)


def test_in_one_rack_only_ports_count():
    found = network_of(FLAT, 1e10, 0.0)
    assert (found.hosts, found.ranks) == (8, 32)
    assert (found.hop_rate, found.send_rate, found.latency_s) == (1e9, 1e9, pytest.approx(1e-5))


def test_a_ring_is_as_slow_as_the_way_between_sites_and_adds_up_latencies():
    """Two sites of two racks of four: 12 hops in racks, 2 between racks, 2 between sites."""
    found = network_of(Topology(2, 2, 4, 1, RACK, RACKS, SITES), 1e10, 0.0)
    assert found.hop_rate == 1e8
    assert found.latency_s == pytest.approx((12 * 1e-5 + 2 * 2e-5 + 2 * 1e-2) / 16)


def test_nodes_of_a_rack_share_its_way_out():
    """Of 16 nodes, 8 share 4 GB/s, and 8 of 15 others are in the other rack."""
    found = network_of(Topology(1, 2, 8, 1, RACK, RACKS, SITES), 1e10, 0.0)
    assert found.send_rate == pytest.approx(4e9 / (8 * 8 / 15))


def test_the_slowest_of_more_workers_is_slower():
    random = np.random.default_rng(1)
    means = [slowest_of(Stragglers(0.1), nodes, 1, 4000, random).mean() for nodes in (1, 10, 1000)]
    assert means == sorted(means)
    # The mean of the largest of ten standard normal draws is 1.54.
    assert np.log(means[1]) == pytest.approx(0.154, abs=0.02)


def test_one_node_that_is_always_slow_slows_all():
    random = np.random.default_rng(1)
    slow = Stragglers(0.0, slow_share=0.5, slow_factor=2.0)
    assert (slowest_of(slow, 1000, 1, 10, random) == 2.0).all()
    assert (slowest_of(Stragglers(), 1000, 1, 10, random) == 1.0).all()


def test_without_failures_a_run_takes_its_work():
    runs = runs_with_failures(1000.0, 1, Failures(1e9, 300, 60), 5, np.random.default_rng(1))
    assert runs.wall_s == pytest.approx(np.full(5, 1000.0))
    assert runs.failures.sum() == 0


def test_failures_cost_restarts_and_lost_work():
    """1,000 nodes, 1,000 h each: one failure an hour. Of each, 300 s and half of 600 s are lost,
    so that 100 h of work take about 100 / (1 - 600 / 3600) h."""
    failures = Failures(1000.0, 300.0, 600.0)
    runs = runs_with_failures(360_000.0, 1000, failures, 400, np.random.default_rng(1))

    assert runs.wall_s.mean() / 3600 == pytest.approx(120, rel=0.03)
    assert runs.failures.mean() == pytest.approx(120, rel=0.05)


def test_a_run_that_fails_before_every_checkpoint_never_ends():
    failures = Failures(1.0, 300.0, 36_000.0)
    runs = runs_with_failures(1e6, 1000, failures, 3, np.random.default_rng(1))
    assert np.isinf(runs.wall_s).all()


def test_the_same_seed_gives_the_same_runs():
    first, second = (
        runs_with_failures(1e6, 50, Failures(100, 60, 60), 9, np.random.default_rng(7))
        for _ in range(2)
    )
    assert (first.wall_s == second.wall_s).all()


def test_a_run_of_many_failures_is_the_sum_of_shorter_ones(monkeypatch):
    failures = Failures(1000.0, 300.0, 600.0)

    def wall_s():
        random = np.random.default_rng(1)
        return runs_with_failures(1_000 * 3600.0, 1000, failures, 400, random).wall_s

    whole = wall_s()
    monkeypatch.setattr(cluster, "MOST_SIMULATED", 100)
    parts = wall_s()
    assert not (parts == whole).all()
    assert parts.mean() == pytest.approx(whole.mean(), rel=0.02)
    assert parts.std() == pytest.approx(whole.std(), rel=0.3)
