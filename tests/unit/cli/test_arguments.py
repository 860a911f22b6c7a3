import pytest
import typer
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli import app as dragoman
from dragoman.cli import arguments
from dragoman.errors import UserError

app = typer.Typer()


@app.command()
def command(
    recipe: arguments.Recipe,
    overrides: arguments.Overrides = None,
    beam: arguments.Beam = None,
    average: arguments.Average = 1,
) -> None:
    print([recipe.name, overrides, beam, average])


def test_the_beam_of_a_command_has_the_bound_of_a_recipe():
    assert arguments.MOST_BEAM == config.MOST_BEAM


def test_a_key_can_be_set_again_and_again():
    done = CliRunner().invoke(app, ["x.toml", "--set", "a.b=1", "--set", "c.d=2", "--beam", "4"])
    assert done.output == "['x.toml', ['a.b=1', 'c.d=2'], 4, 1]\n"


@pytest.mark.parametrize(
    "wrong", [["--beam", "0"], ["--beam", str(arguments.MOST_BEAM + 1)], ["--average", "0"]]
)
def test_numbers_out_of_bounds_are_wrong_usage(wrong):
    done = CliRunner().invoke(app, ["x.toml", *wrong])
    assert done.exit_code == 2
    assert wrong[0] in done.output


MIRROR = "s3://bucket/runs/demo"


@pytest.mark.parametrize(
    "words",
    [
        ["watch", MIRROR],
        ["watch", "runs/demo", MIRROR],
        ["inspect", MIRROR],
        ["compare", "runs/demo", MIRROR],
        ["translate", MIRROR, "one"],
        ["translate", "runs/demo", "--with", MIRROR, "one"],
        ["evaluate", MIRROR],
        ["evaluate", "runs/demo", "--against", MIRROR],
        ["export", MIRROR, "exported", "--to", "safetensors"],
        ["serve", MIRROR],
        ["train", "demo", "--run", MIRROR],
        ["demo", "--run", MIRROR],
    ],
    ids=" ".join,
)
def test_only_the_report_takes_the_address_of_a_mirror_for_a_run(words):
    refused = CliRunner().invoke(dragoman, words).exception
    assert isinstance(refused, UserError)
    for fact in (MIRROR, "dragoman report", "dragoman train RECIPE", "checkpoints.mirror"):
        assert fact in str(refused)


def test_a_folder_here_may_have_any_other_name():
    for name in ("runs/demo", "s3:", "a:b", "/x"):
        assert str(arguments.local_folder(name)) == name
