import math
import socket
import urllib.request

import pytest

from dragoman.telemetry.events import (
    CheckpointSaved,
    Evaluated,
    Incident,
    SensorReading,
    Stamped,
    StepDone,
)
from dragoman.telemetry.export.prometheus import PrometheusEndpoint

parser = pytest.importorskip("prometheus_client.parser")


def a_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def endpoint():
    endpoint = PrometheusEndpoint(a_free_port(), "demo", "node1")
    yield endpoint
    endpoint.close()


def fetched(port):
    """(name, labels but for run and host) -> value, as Prometheus would take it in."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("run"), labels.pop("host")) == ("demo", "node1")
            found[sample.name, *labels.items()] = sample.value
    return found


def test_prometheus_gets_the_newest_figures(endpoint):
    assert fetched(endpoint.port) == {}
    for number in (1, 2):
        parts = {"data": 0.1, "exposed communication": 0.25}
        done = StepDone(number, 0.5, 3.0 / number, 100, 1e-3, math.inf, True, 0.5, parts)
        endpoint(Stamped(1.0, 1.0, done))
    endpoint(Stamped(1.0, 1.0, Evaluated(2, 2.5, None, 31.5, None, "", "", True, 1.0)))
    endpoint(Stamped(1.0, 1.0, CheckpointSaved(2, "step-00000002", 1000, 0.5)))
    endpoint(Stamped(1.0, 1.0, Incident(2, "other", "a hitch")))
    found = fetched(endpoint.port)
    assert found["dragoman_step",] == 2
    assert found["dragoman_loss",] == 1.5
    assert found["dragoman_gradient_norm",] == math.inf
    assert found["dragoman_tokens_total",] == 200
    assert found["dragoman_step_part_seconds", ("part", "exposed communication")] == 0.25
    assert found["dragoman_validation_loss",] == 2.5
    assert found["dragoman_bleu",] == 31.5
    assert found["dragoman_checkpoint_step",] == 2
    assert found["dragoman_troubles_total",] == 1


def test_sensors_have_their_device_as_a_label_and_counters_are_counters(endpoint):
    values = {
        "cpu/percent": 12.5,
        "network/eth0/sent_bytes_total": 10**12,
        "network/lo/sent_bytes_total": 7,
        "gpu/0/power_w": 251.5,
        "tcp/retransmitted_segments_total": 3,
    }
    endpoint(Stamped(1.0, 1.0, SensorReading(values)))
    found = fetched(endpoint.port)
    assert found["dragoman_cpu_percent",] == 12.5
    assert found["dragoman_network_sent_bytes_total", ("device", "eth0")] == 10**12
    assert found["dragoman_network_sent_bytes_total", ("device", "lo")] == 7
    assert found["dragoman_gpu_power_w", ("device", "0")] == 251.5
    assert found["dragoman_tcp_retransmitted_segments_total",] == 3


def test_it_listens_on_this_machine_only(endpoint):
    assert endpoint._server.server_address[0] == "127.0.0.1"
