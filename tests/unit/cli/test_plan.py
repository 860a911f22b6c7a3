import json
from pathlib import Path

from typer.testing import CliRunner

from dragoman.cli import app
from dragoman.errors import DragomanError, UserError

WORDS = "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h"
SHIPPED = Path(__file__).parents[3] / "recipes" / "cluster" / "simulation.toml"


def plan(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_a_plan_is_printed_as_text_and_as_json():
    text, as_json = (plan("wmt16-en-de", "--assume", WORDS, *more) for more in ((), ("--json",)))
    assert text.exit_code == as_json.exit_code == 0
    assert "60,880,896 parameters" in text.output
    assert json.loads(as_json.output)["parameters"] == 60_880_896


def test_a_page_is_written(tmp_path):
    path = tmp_path / "plan.html"
    assert plan("wmt16-en-de", "--assume", WORDS, "--html", path).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_that_cannot_be_written_is_refused_before_hosts_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.plan.source.plan_for", lambda *_, **__: 1 / 0)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "plan.html"):
        done = plan("wmt16-en-de", "--hosts", "a,b", "--html", path)
        assert isinstance(done.exception, DragomanError)


def test_settings_can_be_changed():
    done = plan("wmt16-en-de", "--assume", WORDS, "--set", "training.steps=7", "--json")
    assert json.loads(done.output)["steps"] == 7


def test_a_cluster_is_simulated():
    done = plan("wmt16-en-de", "--simulate", SHIPPED, "--json")
    assert json.loads(done.output)["nodes"] == 1024


def test_the_schema_is_printed():
    assert "properties" in json.loads(plan("--json-schema").output)


def test_wrong_usage_is_one_sentence():
    for arguments in (
        (),
        ("wmt16-en-de",),
        ("wmt16-en-de", "--assume", "nonsense"),
        ("wmt16-en-de", "--assume", WORDS, "--hosts", "a,b"),
        ("wmt16-en-de", "--simulate", SHIPPED, "--assume", WORDS),
        ("wmt16-en-de", "--check", "/nowhere.json"),
    ):
        assert isinstance(plan(*arguments).exception, UserError), arguments
