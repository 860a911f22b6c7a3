"""The site is built without a broken link, from the program as it is, and needs nothing else."""

import os
import re
import subprocess
import sys

import pytest
import typer.main
from docs.shown_blocks import PAGES, ROOT

import dragoman
from docs_site.commands import commands_page
from docs_site.keys import keys_page, type_of
from docs_site.markdown import code, prose
from docs_site.modules import api_page, modules_page
from dragoman.cli import app
from dragoman.config import Config, config_keys, source_keys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_and_all_that_is_generated(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    reference = site / "reference"
    assert 'id="dragoman-lab-up"' in (reference / "commands.html").read_text("utf-8")
    assert "tokens_per_update" in (reference / "keys.html").read_text("utf-8")
    assert 'id="dragoman.api.train"' in (reference / "python.html").read_text("utf-8")
    assert "dragoman.training.train" in (reference / "modules.html").read_text("utf-8")
    assert (site / "recipes" / "cluster" / "hosts.toml").exists()


def test_a_page_of_the_site_loads_nothing_from_elsewhere(site):
    loads = re.compile(
        r'<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//|@import|url\(["\']?http'
    )
    links = re.compile(r'<link\b[^>]*\brel="(?!canonical)[^"]*"[^>]*href="(?:https?:)?//')
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        if page.parent.name != "gallery" or page.name == "index.html":
            assert not loads.search(text), page
            assert not links.search(text), page
    for sheet in site.rglob("*.css"):
        assert not loads.search(sheet.read_text("utf-8")), sheet


def test_links_to_recipes_lead_to_their_copies():
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    from docs_site.hooks import links_within_the_site

    assert links_within_the_site("[a](../recipes/x.toml)", 0) == "[a](recipes/x.toml)"
    assert links_within_the_site("[a](../../recipes/x.toml)", 1) == "[a](../recipes/x.toml)"
    assert links_within_the_site("[a](../data.md)", 1) == "[a](../data.md)"


def test_the_command_page_has_every_command_and_option():
    page = commands_page(app)
    for name, command in typer.main.get_command(app).commands.items():
        assert (f"\n## dragoman {name}\n" in page) == (not command.hidden)
        if command.hidden:
            continue
        section = page.partition(f"\n## dragoman {name}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[0] in section


def test_the_key_page_has_every_key_with_its_default():
    page = keys_page()
    for key, default, _ in config_keys():
        section, _, name = key.rpartition(".")
        part = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else page
        (row,) = re.findall(rf"^\| `{name}` \|.*$", part, re.M)[:1]
        assert f"| {code(default)} |" in row
    for kind, _, keys in source_keys():
        part = page.partition(f"\n### {kind}\n")[2].partition("\n### ")[0]
        assert all(f"| `{key}` |" in part for key, _, _ in keys)


def test_types_are_told_in_words():
    training = Config.model_fields["training"].annotation.model_fields
    assert type_of(training["steps"].annotation) == "whole number"
    assert type_of(training["micro_batch_tokens"].annotation) == "whole number or text"
    assert type_of(bool) == "true or false"


def test_the_python_page_has_every_public_name_and_the_modules_all_modules():
    names = {name for name in dragoman.__all__ if not name.startswith("_")}
    assert {line.rpartition(".")[2] for line in re.findall(r"::: (\S+)", api_page())} == names
    package = ROOT / "src" / "dragoman"
    listed = {*re.findall(r"^\| `(\S+)` \|", modules_page(package), re.M)}
    assert {"dragoman.training.train", "dragoman.lab", "dragoman.config"} <= listed


def test_text_from_the_source_is_shown_as_it_is():
    assert prose("a <name> of  dragoman[zstd] and `a|b_c`") == (
        r"a &lt;name> of dragoman\[zstd] and `a\|b_c`"
    )
    assert code("") == ""
    assert code("a|b") == r"`a\|b`"


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_on_github(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link
