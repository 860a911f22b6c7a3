import pytest
from unit.comparison.invented_runs import run
from unit.report.fake_run import CONFIG, FakeRun

from dragoman.comparison.compare import compare
from dragoman.errors import UserError


def test_runs_without_steps_or_manifest_are_compared_as_far_as_it_goes(tmp_path):
    first, second = run(tmp_path / "a"), FakeRun(tmp_path / "b")
    found = compare(first.directory, second.directory)

    assert "has recorded no step" in found.speed.sentences[0]
    assert "has no manifest" in found.data.sentences[0]


def test_the_same_run_twice_is_refused(tmp_path):
    first = run(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")

    with pytest.raises(UserError, match="is the same run as"):
        compare(first.directory, type(first.directory)(tmp_path / "link"))


def test_other_languages_are_refused(tmp_path):
    first = run(tmp_path / "a")
    second = run(tmp_path / "b", config=CONFIG.replace('"de"', '"fr"'))

    with pytest.raises(UserError, match=r"translates en to de and .* en to fr"):
        compare(first.directory, second.directory)
