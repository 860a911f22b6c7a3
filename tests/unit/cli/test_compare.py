import json

from processes import dragoman
from unit.comparison.invented_runs import run


def test_the_command_prints_a_table_or_json_and_refuses_in_one_sentence(tmp_path):
    run(tmp_path / "a"), run(tmp_path / "b", 2.0)
    shown = dragoman("compare", tmp_path / "a", tmp_path / "b")
    told = dragoman("compare", tmp_path / "a", tmp_path / "b", "--json")
    refused = dragoman("compare", tmp_path / "a", tmp_path)

    assert shown.returncode == told.returncode == 0, (shown.stderr, told.stderr)
    assert "x 2.00" in shown.stdout
    assert json.loads(told.stdout)["speed"]["rows"][0]["ratio"] == 2.0
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: ")
    assert "is not a run directory" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
