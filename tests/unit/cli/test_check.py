import json

import pytest
from check_worlds import ports, rates, result
from typer.testing import CliRunner

from dragoman.check import check
from dragoman.check.result import Finding, read_check
from dragoman.cli import app

UNFIT = Finding(subject="port", verdict="unfit", sentence="node3 is slow.", hosts=("node3",))


@pytest.fixture
def checked(monkeypatch):
    """Replaces the measuring; gives what the command was to check."""
    given = {}

    def install(made):
        def measured(cluster, config, rehearse, **more):
            given.update(cluster=cluster, config=config, **more)
            more["tell"]("measuring")
            return made

        monkeypatch.setattr(check, "check_cluster", measured)
        return given

    return install


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_healthy_cluster_ends_with_0_and_an_unfit_one_with_3(checked):
    checked(result(rates(ports(4))))
    assert run("--hosts", "a,b").exit_code == 0
    checked(result(rates(ports(4)), [UNFIT]))
    done = run("--hosts", "a,b")
    assert done.exit_code == 3
    assert "node3 is slow." in done.stdout


def test_json_is_all_that_goes_to_standard_output(checked):
    checked(result(rates(ports(4)), [UNFIT]))
    done = run("--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["findings"][0]["hosts"] == ["node3"]


def test_files_are_written_also_if_something_is_unfit(checked, tmp_path):
    made = result(rates(ports(4)), [UNFIT])
    checked(made)
    page, file = tmp_path / "new" / "c.html", tmp_path / "c.json"
    assert run("--html", page, "--output", file).exit_code == 3
    assert read_check(file) == made
    assert "node3" in page.read_text()


@pytest.mark.parametrize("option", ["--html", "--output"])
def test_nothing_is_measured_for_a_file_that_cannot_be_written(checked, tmp_path, option):
    given = checked(result(rates(ports(4))))
    (tmp_path / "file").write_text("")
    done = run(option, tmp_path / "file" / "c")
    assert done.exit_code != 0
    assert not given


def test_recipe_hosts_and_settings_are_passed_on(checked, digits):
    given = checked(result({}))
    assert run(digits, "--hosts", "a,b", "--workers", 2, "--set", "training.seed=7").exit_code == 0
    assert [host.name for host in given["cluster"].hosts] == ["a", "b"]
    assert given["config"].training.seed == 7
    assert given["workers"] == 2


@pytest.mark.parametrize(
    "arguments",
    [("--hosts", "nowhere.toml"), ("--hosts", "a,,b"), ("nowhere-recipe",), ("--set", "a.b=1"),
     ("--hosts", "a,a"), ("--html", "/")],
)  # fmt: skip
def test_wrong_input_measures_nothing(checked, arguments):
    given = checked(result({}))
    done = run(*arguments)
    assert done.exit_code != 0
    assert getattr(done.exception, "exit_code", done.exit_code) == 2
    assert given == {}
