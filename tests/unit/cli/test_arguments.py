import pytest
import typer
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli import arguments

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
