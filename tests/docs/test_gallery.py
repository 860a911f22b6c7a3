"""The gallery's runs, without a lab: their recipes, what is wrong with them, and their page."""

import dataclasses
import re

import pytest
from docs.shown_blocks import ROOT

from docs_site.gallery import recipe_of, reports, worlds
from dragoman.config import parse_config

PAGE = (ROOT / "docs" / "gallery" / "index.md").read_text("utf-8")


@pytest.mark.parametrize("name", worlds())
def test_the_recipe_of_each_run_can_be_read(name, tmp_path):
    _, settings = worlds()[name]
    config = parse_config(recipe_of(name, settings, tmp_path), name)
    assert config.name == name
    assert config.prepared_folder == tmp_path / f"{name}-prepared" / "prepared"


def test_each_run_has_a_trouble_of_its_own_and_a_name():
    found = worlds()
    assert [world.name for world, _ in found.values()] == list(found)
    nameless = [(dataclasses.replace(world, name=""), at) for world, at in found.values()]
    assert all(nameless.count(each) == 1 for each in nameless)


def test_the_page_shows_each_run_with_its_picture_and_a_place_for_its_report():
    assert re.findall(r"<!-- report: (\S+) -->", PAGE) == list(worlds())
    for name in worlds():
        assert f"({name}.png)" in PAGE
        assert (ROOT / "docs" / "gallery" / f"{name}.png").is_file()


def test_reports_are_found_by_the_names_of_their_runs(tmp_path):
    assert reports(tmp_path / "none") == []
    for name in ("straggler", "slow-link"):
        report = tmp_path / name / "run" / "report.html"
        report.parent.mkdir(parents=True)
        report.write_text("")
    (tmp_path / "overfitting" / "run").mkdir(parents=True)
    (tmp_path / "slow-link-prepared").mkdir()
    assert reports(tmp_path) == [
        (name, tmp_path / name / "run" / "report.html") for name in ("slow-link", "straggler")
    ]


def test_the_page_links_the_reports_that_were_made_and_says_how_others_are():
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    from docs_site.hooks import with_reports

    shown = with_reports(PAGE, ["straggler"])
    assert re.findall(r"\(([\w-]+)\.html\)", shown) == ["straggler"]
    assert shown.count("`sudo make gallery` makes it") == len(worlds()) - 1
    assert "<!--" not in shown
