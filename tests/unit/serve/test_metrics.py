from prometheus_client.parser import text_string_to_metric_families
from unit.serve.served import serving


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_are_what_has_happened(tmp_path):
    with serving(tmp_path) as served:
        served.translate(q="Hello there.")
        served.translate(q="Good morning.")
        served.translate(q=5)
        served.client.get("/nothing/of/this/name")
        answer = served.client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = samples(answer.text)
    route = ("route", "/translate")
    pair = (("source", "en"), ("target", "de"))
    assert found["dragoman_http_requests_total", route, ("status", "200")] == 2
    assert found["dragoman_http_requests_total", route, ("status", "400")] == 1
    assert found["dragoman_http_requests_total", ("route", "other"), ("status", "404")] == 1
    assert found["dragoman_http_request_seconds_count", route] == 3
    assert found["dragoman_characters_total", *pair] == len("Hello there.Good morning.")
    assert found["dragoman_batch_sentences_sum",] == 2
    assert found["dragoman_model_step", *pair] == 1
    assert found["dragoman_reloads_total", *pair] == 0
    assert found["dragoman_queue_sentences",] == 0
    assert found["dragoman_requests_running",] == 0
