import shutil
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from dragoman.telemetry.sensors.network import Network, Tcp
from dragoman.telemetry.sensors.sensor import AbsentError

FIELDS = psutil.net_io_counters()._fields


def test_bytes_over_an_interface_are_counted():
    network = Network()
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        receiver, _ = server.accept()
        with receiver:
            before = network.read()
            for _ in range(20):
                client.sendall(b"x" * 50_000)
                left = 50_000
                while left:
                    left -= len(receiver.recv(left))
            after = network.read()
    for way in ("sent", "received"):
        gained = {
            what: after[f"network/lo/{way}_{what}_total"] - before[f"network/lo/{way}_{what}_total"]
            for what in ("bytes", "packets", "errors", "drops")
        }
        assert gained["bytes"] >= 1_000_000
        assert gained["packets"] > 0


def test_the_highest_rate_between_two_readings_is_noted(monkeypatch):
    """A burst of a tenth of a second shows, however long the reading lasts."""
    sent = iter([0, 1_000, 5_001_000, 5_002_000, 5_003_000])
    clock = iter([1.0, 1.1, 1.2, 1.3, 2.0])

    def counters(**_):
        return {"eth0": SimpleNamespace(**dict.fromkeys(FIELDS, 1) | {"bytes_sent": next(sent)})}

    network = Network()
    monkeypatch.setattr(psutil, "net_io_counters", counters)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    network.glance()
    network.glance()
    network.glance()
    first, second = network.read(), network.read()

    assert first["network/eth0/sent_peak_bytes_per_s"] == pytest.approx(5e7)
    assert first["network/eth0/received_peak_bytes_per_s"] == 0
    assert second["network/eth0/sent_peak_bytes_per_s"] == pytest.approx(1000 / 0.7, abs=1)


def test_another_network_namespace_has_other_counters():
    program = (
        "from dragoman.telemetry.sensors.network import Network, Tcp\n"
        "import socket\n"
        "print(sorted({n.split('/')[1] for n in Network().about}), Tcp().read())"
    )
    unshare = ["unshare", "--net", "--map-root-user", sys.executable, "-c", program]
    if not shutil.which("unshare"):
        pytest.skip("needs unshare")
    done = subprocess.run(unshare, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(f"no network namespaces here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[] {'tcp/sent_segments_total': 0")


def test_rates_are_those_that_interfaces_announce():
    announced = {
        name: state.speed * 1e6 / 8
        for name, state in psutil.net_if_stats().items()
        if state.isup and state.speed
    }
    network = Network()
    assert network.link_bytes_per_s == announced
    assert network.about["network/lo"] == "speed not known"


def test_what_tcp_had_to_repeat():
    values = Tcp().read()
    assert values["tcp/retransmitted_segments_total"] >= 0
    assert values["tcp/sent_segments_total"] > 0
    assert "tcp/timeouts_total" in values


def test_counters_that_a_kernel_lacks_are_missing_and_files_that_it_lacks_absent(tmp_path):
    (tmp_path / "snmp").write_text("Ip: A\nIp: 1\nTcp: OutSegs RetransSegs\nTcp: 70 3\n")
    (tmp_path / "netstat").write_text("IpExt: A\nIpExt: 1\n")
    tcp = Tcp(tmp_path)
    assert tcp.read() == {
        "tcp/sent_segments_total": 70,
        "tcp/retransmitted_segments_total": 3,
    }
    assert set(tcp.missing) == {
        "tcp/received_errors_total",
        "tcp/timeouts_total",
        "tcp/lost_retransmissions_total",
    }
    (tmp_path / "netstat").unlink()
    with pytest.raises(AbsentError, match="netstat cannot be read: No such file"):
        tcp.read()
