from unit.report.fake_run import started
from unit.report.rendered import report

from dragoman.report.sections import hosts
from dragoman.telemetry.events import SensorReading


def measured(run):
    for rank in (0, 1):
        readings = [
            {
                "cpu/percent": 10.0 + rank,
                "gpu/0/utilization_percent": 90.0,
                "network/eth0/sent_bytes_total": 5e6 * at,
                "network/eth0/received_bytes_total": 3e6 * at,
            }
            for at in range(1, 6)
        ]
        events = [(float(at), SensorReading(values)) for at, values in enumerate(readings, 1)]
        run.with_events([(0.0, started(rank=rank, ranks=2)), *events], rank=rank)
    return report(run)


def test_utilization_has_a_line_for_each_device(empty_run):
    found = measured(empty_run)

    assert [line.name for line in hosts.cpu_utilization(found.hosts).lines] == ["host-0", "host-1"]
    gpus = hosts.gpu_utilization(found.hosts).lines
    assert [line.name for line in gpus] == ["host-0 gpu 0", "host-1 gpu 0"]


def test_both_directions_of_a_host_share_a_color_and_only_one_has_a_band(empty_run):
    lines = {line.name: line for line in hosts.network_throughput(measured(empty_run).hosts).lines}
    sent, received = lines["host-1 sent"], lines["host-1 received"]

    assert (sent.values[-1], received.values[-1]) == (5.0, 3.0)
    assert sent.color == received.color != lines["host-0 sent"].color
    assert sent.lows
    assert not received.lows
