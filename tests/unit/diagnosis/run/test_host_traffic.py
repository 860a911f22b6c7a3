import math

import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

from dragoman.diagnosis.run.hosts import LOOPBACK
from dragoman.telemetry.events import SensorReading, SensorsFound


def counted(rank, number):
    return {"traffic_bytes": {"sent": 1e6 * (rank + 1), "received": 2e6, "predicted": 1e6}}


def sensors(rank, end):
    found = SensorsFound(f"host-{rank}", [], {}, link_bytes_per_s={"eth0": 1e8 / (rank + 1)})
    totals = ((second, 3e6 * second) for second in range(int(end)))
    return [
        (0.1, found),
        *(
            (float(at), SensorReading({f"network/eth0/{way}_bytes_total": total for way in WAYS}))
            for at, total in totals
        ),
    ]


WAYS = ("sent", "received")


def test_traffic_is_counted_by_host_a_step_and_a_second(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=counted, beside=sensors)
    facts = read(run)
    step_s = sum(with_parts().values())

    assert [own.host for own in facts.host_traffic] == ["host-0", "host-1"]
    second = facts.host_traffic[1]
    assert second.bytes_per_step == {"sent": 2e6, "received": 2e6, "predicted": 1e6}
    assert second.rates["sent"] == pytest.approx(2e6 / step_s)
    assert second.busy_rates == pytest.approx({"sent": 3e6, "received": 3e6})
    assert second.carried == pytest.approx(3e6)
    assert (second.interface, second.port_rate) == ("eth0", 5e7)
    assert math.isnan(second.retransmitted)


def test_ranks_of_one_host_talk_over_its_loopback(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=1, more=counted)

    assert read(run).host_traffic[0].interface == LOOPBACK


def test_hosts_that_have_counted_nothing_are_left_out(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts())

    assert read(run).host_traffic == []
