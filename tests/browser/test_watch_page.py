"""What a person sees who opens the page of `dragoman watch --web` and leaves it open."""

import os
import re
import shutil
import signal
from contextlib import contextmanager

import pytest
from browser.invented_run import write_invented_run
from browser.test_report_page import color_of
from digits_language import write_recipe
from labs import lab
from processes import ENDLESS, losses, start_dragoman, wait_until, worker_processes
from unit.report.fake_run import MONOTONIC_AT, WALL_AT, FakeRun, started, step
from unit.watch.watched_values import AT, FakeWatch, changes_of, watched, with_verdict
from watch_server import WatchServer

from dragoman.report.write import read_report
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Stamped, to_line
from dragoman.watch.content import VerdictChange
from dragoman.watch.run_watch import RunWatch

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
LONG_MS = 60_000
ATTACK = '<img src=x onerror="document.title=1"><b>bold</b>'
NETWORK = ".card[href$='-network']"
RANGE = "document.querySelector('[data-part=recent] .plot')._fullLayout.xaxis.range"
SHOWN_MS = f"(({RANGE}).map(at => new Date(at)).reduce((from, to) => to - from))"
GIVEN_MS = """JSON.parse(document.querySelector('[data-part=recent] .plot + script').textContent)
    .layout.xaxis.range.reduce((from, to) => to - from)"""

pytestmark = pytest.mark.timeout(500)


@pytest.fixture(scope="module")
def invented(tmp_path_factory):
    """The report of an invented run."""
    run = write_invented_run(tmp_path_factory.mktemp("runs") / "invented")
    return read_report(run.directory)


class Seen:
    """The page in a browser, and what has gone wrong in it."""

    def __init__(self, browser, address, **how):
        self.context = browser.new_context(**{"viewport": WIDE} | how)
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONG_MS)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self._note(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def _note(self, text: str):
        # Where labels come and go with the margin, Plotly stops measuring it and draws the plot.
        if "Too many auto-margin redraws" not in text:
            self.complaints.append(text)

    def has(self, selector: str, text: str, number: int = 0):
        """Waits until an element has this text, and returns it."""
        found = self.page.locator(selector, has_text=text).nth(number)
        found.wait_for()
        return found


@pytest.fixture
def opened(chromium, served):
    """Opens the page of a server; at the end nothing may have been wrong in it.

    Needs `served`, so that pages close before the servers that they are connected to.
    """
    pages = []

    def open_page(server, **how):
        pages.append((server.address, Seen(chromium, server.address, **how)))
        return pages[-1][1]

    yield open_page
    for address, seen in pages:
        seen.context.close()
        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith(address)] == []


@pytest.fixture
def served():
    """Serves watches, made-up or real, until the end of the test."""
    servers, given = [], []

    def serve(*watches, port=0):
        given.extend(watches)
        servers.append(WatchServer(watches, port))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
    for watch in given:
        watch.close()


def turned(report, **changes):
    """The report after the answer about the network has changed, and the changes seen."""
    told = {"verdict": "network-bound", "health": "poor"} | changes
    later = with_verdict(report, "network", **told)
    change = VerdictChange(
        key="network",
        title="Network",
        sentence="",
        before="compute-bound",
        at=AT,
        verdict=told["verdict"],
        health=told["health"],
    )
    return later, [*changes_of(report), change]


def test_figures_move_without_a_reload_and_nothing_comes_from_elsewhere(opened, served, invented):
    watch = FakeWatch(watched(invented))
    seen = opened(served(watch))
    page = seen.page
    seen.has(".tiles dd", "300")
    page.evaluate("window.isSame = true")

    watch.shown = watched(invented, step=640, loss=2.125, sentence="It goes on.")

    seen.has(".tiles dd", "640")
    seen.has(".tiles dd", "2.125")
    seen.has(".sentence", "It goes on.")
    page.wait_for_function("() => document.title.startsWith('64 %')")
    assert page.evaluate("window.isSame")
    assert page.locator(".card").count() == 11
    assert page.locator("#link").inner_text() == "Live"


def test_every_plot_is_drawn_once_it_is_scrolled_to(opened, served, invented):
    page = opened(served(FakeWatch(watched(invented)))).page
    page.locator(".plot").first.wait_for(state="attached")
    count = page.locator(".plot").count()
    assert count > 12
    for place in range(count):
        plot = page.locator(".plot").nth(place)
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()


def test_what_a_reader_does_survives_an_update(opened, served, invented):
    watch = FakeWatch(watched(invented))
    seen = opened(served(watch), reduced_motion="reduce")
    page = seen.page
    seen.has(".card", "")
    fold = page.locator("details").first
    fold.locator("summary").click()
    button = page.locator("pre.command button").first
    plot = page.locator("[data-part=recent] .plot").first
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    box = plot.locator(".nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    page.wait_for_function(f"() => {SHOWN_MS} < 0.5 * {GIVEN_MS}")
    button.focus()
    zoomed = page.evaluate(RANGE)
    later, changes = turned(invented)

    recent = watched().now.recent
    # Time goes on, and with it the range that the server gives.
    moved = recent.model_copy(
        update={
            "loss": [loss + 1 for loss in recent.loss],
            "at": [at + 60 for at in recent.at],
        }
    )
    watch.shown = watched(later, changes, step=301, recent=moved)
    seen.has(".tiles dd", "301")
    seen.has(NETWORK, "network-bound")
    page.wait_for_function(
        """() => document.querySelector("[data-part=recent] .plot").data[0].y[0] > 4.4"""
    )

    assert fold.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.textContent") == "Copy"
    assert page.evaluate(RANGE) == zoomed

    plot.locator(".nsewdrag").first.dblclick()  # shows all of it again
    on = moved.model_copy(update={"at": [at + 2 for at in moved.at]})
    watch.shown = watched(later, changes, step=302, recent=on)
    page.wait_for_function(f"() => {SHOWN_MS} > 0.9 * {GIVEN_MS}")


def test_what_is_looked_at_stays_in_place_when_something_above_grows(opened, served, invented):
    watch = FakeWatch(watched(invented))
    seen = opened(served(watch), reduced_motion="reduce")
    seen.has(".card", "")
    heading = seen.page.locator("[id$='-traffic'] h2")
    heading.scroll_into_view_if_needed()
    for plot in seen.page.locator("[id$='-traffic'] .plot").all():
        plot.locator(".main-svg").first.wait_for()
    before = heading.bounding_box()

    watch.shown = watched(*turned(invented), sentence="It has a lot to say. " * 50)

    seen.has(".sentence", "a lot to say")
    assert heading.bounding_box()["y"] == pytest.approx(before["y"], abs=2)


def test_a_card_that_turns_red_is_highlighted_and_announced(opened, served, invented):
    watch = FakeWatch(
        watched(with_verdict(invented, "network", verdict="compute-bound", health="good"))
    )
    seen = opened(served(watch))
    assert "good" in seen.has(NETWORK, "compute-bound").get_attribute("class")
    assert seen.page.locator("#announced").inner_text() == ""

    watch.shown = watched(*turned(invented))

    card = seen.has(NETWORK, "network-bound")
    assert "poor" in card.get_attribute("class")
    assert re.search(r"since \d\d:\d\d:\d\d; before: compute-bound", card.inner_text())
    assert card.get_attribute("data-changed") is not None
    told = seen.page.locator("#announced").inner_text()
    assert "network-bound" in told
    assert "needs action" in told
    seen.page.wait_for_function(
        "selector => document.querySelector(selector).dataset.changed === undefined", arg=NETWORK
    )


def test_only_another_state_is_announced_not_every_figure(opened, served, invented):
    watch = FakeWatch(watched(invented))
    seen = opened(served(watch))
    watch.shown = watched(invented, step=301, sentence="Still training.")
    seen.has(".sentence", "Still training.")
    assert seen.page.locator("#announced").inner_text() == ""

    watch.shown = watched(invented, state="failed", sentence="It failed.")

    seen.has("#announced", "It failed.")


def test_markup_in_a_sentence_is_shown_as_text(opened, served, invented):
    attacked, changes = turned(invented, verdict=ATTACK, sentence=ATTACK, plain=ATTACK)
    watch = FakeWatch(watched(attacked, changes, name=ATTACK, sentence=ATTACK, trouble=ATTACK))
    seen = opened(served(watch))

    for selector in (".sentence", ".banner", f"{NETWORK} .verdict", "[id$='-network'] .plain"):
        assert seen.has(selector, "onerror").inner_text() == ATTACK
    assert seen.page.locator("main img").count() == 0


def test_in_the_dark_page_and_plots_are_dark(opened, served, invented):
    page = opened(served(FakeWatch(watched(invented))), color_scheme="dark").page
    page.locator("[data-part=recent] .plot").first.scroll_into_view_if_needed()
    page.locator("[data-part=recent] .plot .xtick text").first.wait_for()

    assert color_of(page, "body", "backgroundColor") < 60
    assert color_of(page, ".tiles dd", "color") > 180
    assert color_of(page, ".plot .xtick text", "fill") > 120


@pytest.mark.parametrize("runs", [1, 2])
def test_a_phone_needs_no_scrolling_to_the_side(opened, served, invented, runs):
    watches = [FakeWatch(watched(invented)) for _ in range(runs)]
    page = opened(served(*watches), viewport=PHONE, is_mobile=True, has_touch=True).page
    bars = page.locator("[data-part=ranks] .plot").first
    bars.scroll_into_view_if_needed()
    bars.locator(".main-svg").first.wait_for()

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    tops = page.locator(".run").evaluate_all("runs => runs.map(r => r.getBoundingClientRect().top)")
    assert len(set(tops)) == runs


def test_several_runs_stand_side_by_side_and_cards_lead_to_their_own_answers(
    opened, served, invented
):
    watches = [FakeWatch(watched(invented, name=name)) for name in ("first", "second")]
    seen = opened(
        served(*watches), viewport={"width": 1600, "height": 900}, reduced_motion="reduce"
    )
    seen.has(".run h2", "second")
    page = seen.page
    boxes = [page.locator(".run").nth(place).bounding_box() for place in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1600

    page.locator(f".run:nth-child(2) {NETWORK}").click()

    assert page.url.endswith("#run2-network")
    identifiers = page.locator("[id]").evaluate_all("all => all.map(each => each.id)")
    assert len(set(identifiers)) == len(identifiers)


def test_the_keyboard_reaches_the_cards(opened, served, invented):
    seen = opened(served(FakeWatch(watched(invented))), reduced_motion="reduce")
    seen.has(".card", "")
    seen.page.keyboard.press("Tab")
    assert "card" in seen.page.evaluate("document.activeElement.className")
    seen.page.keyboard.press("Enter")
    assert "#run1-" in seen.page.url


def test_a_lost_connection_is_said_and_mended_after_a_restart(chromium, invented):
    first = WatchServer([FakeWatch(watched(invented))])
    seen = Seen(chromium, first.address)
    seen.has(".tiles dd", "300")
    banner = seen.page.locator("#lost")
    assert not banner.is_visible()

    first.stop()
    banner.wait_for()
    assert "lost" in banner.inner_text()
    assert seen.page.locator("#link").inner_text() == "Not connected"

    with WatchServer([FakeWatch(watched(invented, step=999))], port=first.port):
        seen.has(".tiles dd", "999")
        banner.wait_for(state="hidden")
        assert seen.page.locator(".run").count() == 1
        seen.context.close()
    # What the browser itself says of a server that is not there.
    assert [text for text in seen.complaints if "ERR_" not in text] == []


# From here on with what really follows a run.


def write_growing(root) -> FakeRun:
    run = FakeRun(root).with_manifest()
    return run.with_events([(0.0, started()), *((float(n), step(n)) for n in range(1, 4))])


def append(run: FakeRun, text: str, rank: int = 0) -> None:
    with run.directory.events_of(1, rank).open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_finished_run_opens_the_same_way(opened, served, tmp_path):
    run = write_invented_run(tmp_path / "run")
    seen = opened(served(RunWatch(run.directory)))

    seen.has(".state .pill", "finished")
    seen.has(".card", "")
    assert seen.page.locator(".card").count() == 11
    seen.has("[data-part='time line'] h3", "Attempts")


def test_a_torn_line_is_no_trouble_and_the_rest_is_read_when_it_comes(opened, served, tmp_path):
    run = write_growing(tmp_path / "run")
    seen = opened(served(RunWatch(run.directory)))
    seen.has(".tiles dd", "3")
    line = to_line(Stamped(1_700_000_004.0, 504.0, step(1234)))
    append(run, line[:20])
    append(run, line[20:])

    seen.has(".tiles dd", "1,234")


def test_a_folder_that_goes_away_is_said_and_the_server_stays_up(opened, served, tmp_path):
    run = write_growing(tmp_path / "run")
    server = served(RunWatch(run.directory))
    seen = opened(server)
    seen.has(".tiles dd", "3")

    shutil.rmtree(run.directory.root)

    seen.has(".banner", str(run.directory.root))
    seen.page.reload()
    seen.has(".banner", str(run.directory.root))


def test_a_run_of_a_newer_version_is_said(opened, served, tmp_path):
    run = write_growing(tmp_path / "run")
    text = run.directory.events_of(1, 0).read_text()
    run.directory.events_of(1, 0).write_text(re.sub(r'"format":\s*\d+', '"format":9999', text))
    seen = opened(served(RunWatch(run.directory)))

    seen.has(".banner", "newer")


def steps_over_a_link(first: int, last: int, begun_s: float, communication_s: float):
    """Of ranks that compute for a second each step."""
    parts_s = {"data": 0.01, "forward": 0.3, "backward": 0.6, "optimizer": 0.09}
    for place, number in enumerate(range(first, last + 1), start=1):
        yield (
            begun_s + place * (1.0 + communication_s),
            step(
                number,
                1.0 + communication_s,
                parts_s=parts_s | {"communication": communication_s},
                traffic_bytes={"sent": 3.7e8, "received": 3.7e8, "predicted": 3.65e8},
            ),
        )


@pytest.mark.cluster
def test_a_run_that_comes_to_wait_for_the_network_turns_red_while_it_is_watched(
    opened, served, tmp_path
):
    run = FakeRun(tmp_path / "run").with_manifest()
    for rank in range(2):
        steps = steps_over_a_link(1, 100, 0.0, 0.02)
        run.with_events([(0.0, started(rank=rank, ranks=2)), *steps], rank=rank)
    seen = opened(served(RunWatch(run.directory)))
    assert "good" in seen.has(NETWORK, "compute-bound").get_attribute("class")

    for rank in range(2):
        lines = (
            to_line(Stamped(WALL_AT + at, MONOTONIC_AT + at, event))
            for at, event in steps_over_a_link(101, 300, 102.0, 4.0)
        )
        append(run, "".join(lines), rank)

    # Reports are renewed as often as their cost allows: on a busy machine once in some minutes.
    card = seen.page.locator(f"{NETWORK}.poor", has_text="network-bound")
    card.wait_for(timeout=4 * LONG_MS)
    assert re.search(r"since \d\d:\d\d:\d\d; before: compute-bound", card.inner_text())
    seen.has("section.poor[id$='-network']", "The network is the bottleneck")
    seen.has("#announced", "network-bound")


@contextmanager
def training(folder, *more):
    """Two real workers that train without end."""
    run = folder / "runs" / "watched"
    process = start_dragoman("train", write_recipe(folder), "--run", run, *ENDLESS, *more)
    try:
        wait_until(lambda: process.poll() is not None or max(losses(run), default=0) >= 5)
        assert process.poll() is None, process.communicate()
        yield run
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def test_of_a_real_training_figures_move_and_a_killed_rank_appears_by_name(
    opened, served, tmp_path
):
    with training(tmp_path, "--workers", 2) as run:
        seen = opened(served(RunWatch(RunDir(run))))
        page = seen.page
        seen.has(".state .pill", "training")
        before = page.locator(".tiles dd").first.inner_text()
        page.wait_for_function(
            "before => document.querySelector('.tiles dd').textContent !== before", arg=before
        )
        plot = page.locator("[data-part=ranks] .plot").first
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        bars = page.locator("[data-part=ranks] .ytick text").all_text_contents()
        assert {text.strip().split(",")[0] for text in bars} == {"rank 0", "rank 1"}

        os.kill(worker_processes(run)[1], signal.SIGKILL)

        seen.has(".happenings li.poor", "rank 1")


@pytest.mark.cluster
def test_a_link_that_is_capped_turns_the_network_card_red(opened, served, tmp_path):
    larger = ("model.width=256", "model.filter=512", "model.heads=4")
    settings = [word for each in larger for word in ("--set", each)]
    with lab(nodes=2) as it, training(tmp_path, "--hosts", it.hosts, *settings) as run:
        seen = opened(served(RunWatch(RunDir(run))))
        seen.has(NETWORK, "")
        for node in ("node1", "node2"):
            it.rate(node, "20mbit")

        card = seen.page.locator(f"{NETWORK}.poor", has_text="network-bound")
        card.wait_for(timeout=4 * LONG_MS)
        assert "needs action" in card.inner_text()
