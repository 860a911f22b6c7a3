import numpy as np
from unit.report.fake_run import WALL_AT, FakeRun, started

from dragoman.diagnosis.run.facts import read_facts
from dragoman.report.content import HostCurve
from dragoman.report.host_curves import MOST_POINTS, host_curves, rates
from dragoman.telemetry.events import SensorReading


def curves(run: FakeRun) -> dict[tuple[str, str], HostCurve]:
    facts = read_facts(run.directory, read_at=WALL_AT + 10_000)
    found = host_curves(facts)
    return {(curve.host, curve.sensor): curve for curve in found}


def reading(at: float, bytes_per_s: float, **values: float) -> tuple[float, SensorReading]:
    counted = {"network/eth0/sent_bytes_total": bytes_per_s * at, "network/lo/sent_bytes_total": at}
    return at, SensorReading(counted | {name.replace("__", "/"): v for name, v in values.items()})


def test_each_host_has_its_own_curves(empty_run):
    for rank, speed in ((0, 5e6), (1, 7e6)):
        empty_run.with_events(
            [
                (0.0, started(rank=rank, ranks=2)),
                *(reading(float(at), speed, cpu__percent=10.0 + rank) for at in range(1, 6)),
            ],
            rank=rank,
        )
    found = curves(empty_run)

    assert found["host-0", "network sent"].mean == [5e6] * 4  # of the first reading, none
    assert found["host-1", "network sent"].mean == [7e6] * 4
    assert found["host-1", "cpu"].mean == [11.0] * 5


def test_no_line_is_drawn_over_the_time_between_two_attempts(empty_run):
    for attempt in (1, 2):
        events = [reading(float(at), 1e6) for at in range(1, 5)]
        empty_run.with_events([(0.0, started(attempt)), *events], attempt)
    sent = curves(empty_run)["host-0", "network sent"]

    assert sent.mean == [1e6, 1e6, 1e6, None, 1e6, 1e6, 1e6]
    assert sent.at == sorted(sent.at)


def test_a_dip_between_many_readings_is_kept(empty_run):
    gpu = "gpu__0__utilization_percent"
    events = [
        reading(float(at), 1e6, **{gpu: 3.0 if at == 2000 else 99.0}) for at in range(1, 5000)
    ]
    empty_run.with_events([(0.0, started()), *events])
    curve = curves(empty_run)["host-0", "gpu 0 utilization"]

    assert len(curve.mean) <= MOST_POINTS
    assert min(curve.lowest) == 3.0


def test_readings_of_a_rank_that_never_said_where_it_runs(empty_run):
    empty_run.with_events([reading(1.0, 1e6, cpu__percent=5.0)])

    assert curves(empty_run)["the host of rank 0", "cpu"].mean == [5.0]


def test_a_counter_that_begins_anew_is_not_a_negative_speed():
    speed = rates(np.array([0.0, 10.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0, 3.0]))

    assert np.isnan(speed[[0, 2]]).all()
    assert speed[[1, 3]].tolist() == [10.0, 2.0]


def test_hosts_that_talk_to_each_other_do_not_do_so_over_loopback(empty_run):
    for rank in (0, 1):
        busy_loopback = [
            (at, SensorReading({**own.values, "network/lo/sent_bytes_total": 1e12 * at}))
            for at, own in (reading(float(at), 1e6) for at in range(1, 4))
        ]
        empty_run.with_events([(0.0, started(rank=rank, ranks=2)), *busy_loopback], rank=rank)

    assert curves(empty_run)["host-0", "network sent"].mean == [1e6, 1e6]


def test_many_hosts_share_the_points_of_a_page(empty_run):
    for rank in range(40):
        events = [reading(float(at), 1e6, cpu__percent=5.0) for at in range(1, 600)]
        empty_run.with_events([(0.0, started(rank=rank, ranks=40)), *events], rank=rank)
    found = curves(empty_run)

    assert len({host for host, _ in found}) == 40
    assert sum(len(curve.at) for curve in found.values()) <= MOST_POINTS
