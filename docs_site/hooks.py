"""What MkDocs calls while it builds the site: adds generated pages, recipes and notebooks."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docs_site.commands import commands_page
from docs_site.gallery import reports
from docs_site.keys import keys_page
from docs_site.modules import api_page, modules_page
from dragoman.cli import app

ROOT = Path(__file__).parents[1]
LINKED = ("notebooks", "recipes")
"""Folders beside `docs` whose files pages link to."""


def on_files(files: Files, config: Any) -> Files:
    """Adds pages that are written now, files that pages link to, and reports of the gallery."""
    pages = {
        "reference/commands.md": commands_page(app),
        "reference/keys.md": keys_page(),
        "reference/python.md": api_page(),
        "reference/modules.md": modules_page(ROOT / "src" / "dragoman"),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for folder in LINKED:
        for path in sorted((ROOT / folder).rglob("*.*")):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, path in reports():
        files.append(File.generated(config, f"gallery/{name}.html", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lets links out of `docs` lead to copies, and links the reports that have been made."""
    linked = with_reports(markdown, [name for name, _ in reports()])
    return links_within_the_site(linked, page.file.src_uri.count("/"))


def with_reports(markdown: str, made: Sequence[str]) -> str:
    """Returns the gallery's page with links in place of the comments that stand for reports.

    Reports are too large for the repository; where one has not been made, the page says so.
    """

    def shown(comment: re.Match[str]) -> str:
        if comment[1] in made:
            return f"[Open the whole report]({comment[1]}.html)"
        return (
            "The whole report is not part of this site: `sudo make gallery` makes it, and "
            "`make docs` then links it here."
        )

    return re.sub(r"<!-- report: ([\w-]+) -->", shown, markdown)


def links_within_the_site(markdown: str, depth: int) -> str:
    """Returns the page with links out of `docs` as they are on the site.

    `depth` is the number of folders between `docs` and the page.
    """
    outside, inside = "../" * (depth + 1), "../" * depth
    folders = "|".join(LINKED)
    return re.sub(rf"\]\({re.escape(outside)}(({folders})/)", rf"]({inside}\1", markdown)
