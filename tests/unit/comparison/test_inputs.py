import json

from unit.comparison.invented_runs import rows, run
from unit.report.fake_run import CONFIG, MANIFEST

from dragoman.comparison.compare import compare
from dragoman.rundir import write_json


def test_only_settings_that_differ_are_told_by_their_dotted_keys(tmp_path):
    first = run(tmp_path / "a")
    second = run(tmp_path / "b", config=CONFIG + "\n[optimizer]\nbeta2 = 0.98\n")
    found = compare(first.directory, second.directory)

    assert [(row.what, row.a, row.b) for row in found.settings.rows] == [
        ("optimizer.beta2", 0.997, 0.98)
    ]


def test_where_files_lie_is_no_difference(tmp_path):
    first = run(tmp_path / "a")
    place = '[data]\nprepared = "/elsewhere"'
    second = run(tmp_path / "b", config=CONFIG.replace("[data]", place, 1))
    found = compare(first.directory, second.directory)
    assert found.settings.sentences == ["All settings are the same."]


def test_the_same_settings_data_and_machines_are_said_to_be_the_same(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    found = compare(first.directory, second.directory)

    assert found.settings.sentences == ["All settings are the same."]
    assert "Both learned from the same data" in found.data.sentences[0]
    assert "are the same" in found.machines.sentences[0]


def test_other_data_is_told_with_hashes_and_sizes(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    manifest = json.loads(json.dumps(MANIFEST))
    manifest["data"]["tokenizer_sha256"] = "f" * 64
    manifest["data"]["splits"]["train"]["pairs_kept"] = 495
    write_json(second.directory.manifest, manifest)
    data = compare(first.directory, second.directory).data

    assert rows(data)["tokenizer hash"].b == "f" * 12
    assert rows(data)["train: pairs"].ratio == 0.5
    assert "losses per token are not comparable" in data.sentences[0]
