from pathlib import Path

from typer.testing import CliRunner

from dragoman.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def test_the_page_shows_what_is_printed():
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("$ dragoman plan ")
    command, _, shown = rest.partition("\n")
    recipe, option, words = command.split(" ", 2)
    printed = CliRunner().invoke(app, ["plan", recipe, option, words.strip('"')])
    assert printed.exit_code == 0
    assert printed.output.strip() == shown.partition("```")[0].strip()
