from dragoman.telemetry.sensors.memory import Memory


def test_memory_of_the_host():
    values = Memory().read()
    assert 0 < values["memory/available_bytes"] <= values["memory/total_bytes"]
    assert values["memory/swap_used_bytes"] >= 0
