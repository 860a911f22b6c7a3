"""The report of an invented run, in a real Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.invented_run import write_invented_run

from dragoman.report.write import write_report


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for the tests of a file; as long as it runs, this thread has an event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("needs a Chromium: apt install chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the report stands in."""
    run = write_invented_run(tmp_path_factory.mktemp("runs") / "invented")
    write_report(run.directory)
    return run.directory.root


class Opened:
    """A page, and what went wrong in it."""

    def __init__(self, browser: Any, folder: Path, **how: Any) -> None:
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto((folder / "report.html").as_uri())

    def wait_for_plots(self) -> "Opened":
        """All are drawn in one go, the last one last."""
        self.page.locator(".plot").last.locator(".main-svg").first.wait_for()
        return self


@pytest.fixture
def opened(chromium: Any, report: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_report(**how: Any) -> Opened:
        pages.append(Opened(chromium, report, **how))
        return pages[-1]

    yield open_report
    for page in pages:
        page.context.close()
