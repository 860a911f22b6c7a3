from typer.testing import CliRunner

from dragoman.cli import app
from dragoman.errors import UserError


def test_nobody_starts_a_rehearsal_by_hand():
    done = CliRunner().invoke(app, ["rehearse"])
    assert isinstance(done.exception, UserError)
    assert "dragoman check" in str(done.exception)


def test_it_is_not_offered():
    assert "rehearse" not in CliRunner().invoke(app, ["--help"]).output
