from dragoman.cluster.outlook import NoOutlook


def test_without_an_outlook_a_run_starts_as_ever():
    outlook = NoOutlook()
    assert outlook.before_start(None, None, lambda: False) == {}
    assert outlook.record_came("node1", "events/attempt-001-rank-0000.jsonl", "{}\n") is None
