"""What a person sees who opens the page of `dragoman serve`; the models behind it are made up."""

import asyncio
import re
import threading
from importlib import resources
from pathlib import Path

import pytest
import uvicorn
from unit.serve.served import load_fake, write_run

from dragoman.serve.app import Options, create_app
from dragoman.serve.batching import Batcher
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Models
from dragoman.serve.server import address_of, bind, timed_protocol

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
PAIRS = (("en", "de"), ("de", "en"), ("en", "fr"))
LIMIT = 200


class PageServer:
    """The server in a thread of this process, so that tests can hold its models."""

    def __init__(self, folder: Path, port: int = 0, **options: object) -> None:
        runs = [folder / f"{source}-{target}" for source, target in PAIRS]
        written = [write_run(run, *pair) for run, pair in zip(runs, PAIRS, strict=True)]
        self.models = Models(written, loader=load_fake)
        self._bound = bind("127.0.0.1", port)
        self.address = address_of(self._bound)
        limits = Limits(characters=LIMIT)
        self._batcher, metrics = Batcher(2, 10_000), Metrics()
        app = create_app(self.models, self._batcher, metrics, Options(limits=limits, **options))
        self._server = uvicorn.Server(
            uvicorn.Config(app, http=timed_protocol(20), ws="none", lifespan="off", log_config=None)
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()

    async def _serve(self) -> None:
        await self.models.load()
        await self._server.serve([self._bound])

    def translator(self, source: str = "en", target: str = "de"):
        return self.models.find(source, target).translator

    def stop(self) -> None:
        for model in self.models.loaded:
            model.translator.released.set()
        self._server.should_exit = True
        self._thread.join()
        self._bound.close()
        self._batcher.close()


@pytest.fixture
def server(tmp_path):
    running = PageServer(tmp_path)
    yield running
    running.stop()


class Seen:
    """The page in a browser, what it has asked for and what it has complained about."""

    def __init__(self, browser, address, **how):
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.complaints, self.requests, self.aborted = [], [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note_request)
        self.page.on("requestfailed", self._note_abort)
        self.page.goto(address)
        self.text = self.page.get_by_label("Text to translate")
        self.translation = self.page.get_by_role("textbox", name="Translation")
        self.trouble = self.page.get_by_role("alert")

    def _note_request(self, request) -> None:
        self.requests.append(request)

    def _note_abort(self, request) -> None:
        self.aborted.append(request)

    def has(self, text: str) -> None:
        """Waits until the translation is this text."""
        whole = re.compile(f"^{re.escape(text)}$")
        self.page.locator("#translation", has_text=whole).wait_for()

    @property
    def questions(self) -> list[str]:
        return [
            request.post_data_json["q"]
            for request in self.requests
            if request.url.endswith("/translate")
        ]


@pytest.fixture
def opened(chromium, server):
    pages = []

    def open_page(**how):
        pages.append(Seen(chromium, server.address, **{"viewport": WIDE} | how))
        return pages[-1]

    yield open_page
    for seen in pages:
        seen.context.close()
        assert seen.complaints == []
        assert {request.url.split("/")[2] for request in seen.requests} == {
            server.address.split("/")[2]
        }


def test_what_is_typed_is_translated_when_the_typing_pauses(opened):
    seen = opened()
    seen.text.press_sequentially("Hello there. Bye.", delay=10)
    seen.has("de:Hello there. de:Bye.")
    assert seen.questions[-1] == "Hello there. Bye."
    assert len(seen.questions) < len("Hello there. Bye.")
    assert seen.translation.get_attribute("lang") == "de"
    assert seen.page.locator("#count").inner_text() == f"17 / {LIMIT}"


def test_an_outdated_request_is_cancelled_and_never_shown(opened, server):
    seen = opened()
    translator = server.translator()
    translator.hold()
    seen.text.fill("Old.")
    assert translator.entered.wait(30)
    seen.page.get_by_text("Translating …").wait_for()
    assert seen.page.locator("#answer").get_attribute("aria-busy") == "true"
    seen.text.fill("New.")
    while len(seen.questions) < 2:
        seen.page.wait_for_timeout(20)
    translator.released.set()
    seen.has("de:New.")
    assert len(seen.aborted) == 1
    assert seen.page.locator("#answer").get_attribute("aria-busy") == "false"


def test_a_click_swaps_languages_and_texts(opened):
    seen = opened()
    seen.text.fill("Hello.")
    seen.has("de:Hello.")
    seen.page.get_by_role("button", name="Swap languages").click()
    seen.has("en:de:Hello.")
    assert seen.page.get_by_label("Translate from").input_value() == "de"
    assert seen.page.get_by_label("Translate to").input_value() == "en"
    assert seen.text.input_value() == "de:Hello."


def test_only_what_is_served_can_be_chosen(opened):
    seen = opened()
    seen.page.get_by_label("Translate to").select_option("fr")
    assert seen.page.get_by_role("button", name="Swap languages").is_disabled()
    seen.text.fill("Hello.")
    seen.has("fr:Hello.")
    seen.page.get_by_label("Translate from").select_option("de")
    assert seen.page.get_by_label("Translate to").input_value() == "en"
    seen.page.get_by_label("Translate from").select_option("auto")
    seen.page.get_by_label("Translate to").select_option("de")
    seen.text.fill("This is the house of the man.")
    seen.page.get_by_text("From English").wait_for()


def test_an_alternative_takes_the_place_of_the_translation(opened):
    seen = opened()
    seen.text.fill("Hello.")
    seen.has("de:Hello.")
    assert seen.page.locator("#alternatives li").count() == 3
    seen.page.get_by_role("button", name="de1:Hello.").click()
    seen.has("de1:Hello.")
    seen.page.get_by_role("button", name="de:Hello.").wait_for()


def test_the_translation_is_copied(opened):
    seen = opened(permissions=["clipboard-read", "clipboard-write"])
    seen.text.fill("Hello.")
    seen.has("de:Hello.")
    seen.page.get_by_role("button", name="Copy").click()
    seen.page.get_by_text("Copied").wait_for()
    assert seen.page.evaluate("() => navigator.clipboard.readText()") == "de:Hello."


def test_a_text_that_is_too_long_is_told_before_it_is_sent(opened):
    seen = opened()
    seen.text.fill("x" * (LIMIT + 1))
    seen.trouble.wait_for()
    assert str(LIMIT) in seen.trouble.inner_text()
    assert seen.questions == []
    seen.page.get_by_role("button", name="Clear").click()
    seen.trouble.wait_for(state="hidden")
    assert seen.text.input_value() == ""


def test_what_is_written_is_text_and_never_markup(opened):
    seen = opened()
    seen.text.fill("<img src=x onerror=alert(1)>")
    seen.has("de:<img src=x onerror=alert(1)>")
    assert seen.page.locator("#translation img").count() == 0


def test_errors_are_told_in_words_and_go_away(chromium, server):
    seen = Seen(chromium, server.address, viewport=WIDE)
    seen.text.fill("poison")
    seen.page.get_by_text("The server failed at this request").wait_for()
    assert seen.translation.inner_text() == ""
    seen.page.route("**/translate", lambda route: route.abort())
    seen.text.fill("Hello.")
    seen.page.get_by_text("The server cannot be reached. Trying again in 3 s.").wait_for()
    seen.page.unroute("**/translate")
    seen.has("de:Hello.")  # by itself
    seen.trouble.wait_for(state="hidden")
    # The browser itself tells of answers that are errors, and of nothing else.
    assert all("Failed to load resource" in complaint for complaint in seen.complaints)
    seen.context.close()


def test_a_busy_server_is_asked_again_when_it_says(chromium, server):
    seen = Seen(chromium, server.address, viewport=WIDE)
    refused = {"status": 503, "headers": {"retry-after": "1"}, "json": {"error": "Too busy."}}
    seen.page.route("**/translate", lambda route: route.fulfill(**refused), times=1)
    seen.text.fill("Hello.")
    seen.page.get_by_text("Too busy. Trying again in 1 s.").wait_for()
    seen.has("de:Hello.")
    seen.context.close()


def test_a_key_is_asked_for_where_one_is_needed(chromium, tmp_path):
    running = PageServer(tmp_path, key="secret")
    try:
        seen = Seen(chromium, running.address, viewport=WIDE)
        seen.page.get_by_label("API key").fill("secret")
        seen.text.fill("Hello.")
        seen.has("de:Hello.")
        assert seen.complaints == []
        seen.context.close()
    finally:
        running.stop()


def test_the_card_tells_what_translates(opened):
    seen = opened()
    card = seen.page.locator("#card")
    card.wait_for()
    assert "English to German" in card.inner_text()
    assert "not evaluated yet" in card.inner_text()
    seen.page.get_by_label("Translate to").select_option("fr")
    assert "English to French" in card.inner_text()
    assert seen.page.locator("#report").is_hidden()


def lightness(seen, selector, name):
    script = "(element, name) => getComputedStyle(element)[name]"
    color = seen.page.locator(selector).evaluate(script, name)
    return sum(float(part) for part in re.findall(r"[\d.]+", color)[:3]) / 3


def test_it_is_dark_where_the_system_is(opened):
    dark, light = opened(color_scheme="dark"), opened(color_scheme="light")
    assert lightness(dark, "body", "backgroundColor") < 60 < 200 < lightness(dark, "body", "color")
    assert lightness(light, "body", "backgroundColor") > 200


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_the_panes_are_below_each_other_and_nothing_is_cut_off(opened, width):
    seen = opened(viewport={"width": width, "height": 844}, has_touch=True)
    seen.text.fill("Hello. " + "Donaudampfschifffahrt" * 5)
    seen.page.locator("#alternatives li").first.wait_for()
    above, below = (seen.page.locator(".pane").nth(n).bounding_box() for n in (0, 1))
    assert above["y"] + above["height"] <= below["y"]
    room = seen.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert room <= 0
    for name in ("Swap languages", "Copy", "Clear"):
        assert seen.page.get_by_role("button", name=name).bounding_box()["height"] >= 24


def test_it_can_be_used_with_the_keyboard_alone(opened):
    seen = opened()
    assert seen.text.evaluate("element => element === document.activeElement")
    seen.page.keyboard.type("Hello.")
    seen.page.keyboard.press("Control+Enter")  # at once
    seen.has("de:Hello.")
    order = []
    for _ in range(4):
        seen.page.keyboard.press("Tab")
        order.append(seen.page.evaluate("() => document.activeElement.id"))
    assert order[:3] == ["clear", "translation", "copy"]
    for _ in range(6):
        seen.page.keyboard.press("Shift+Tab")
    assert seen.page.evaluate("() => document.activeElement.id") in {"swap", "target", "source"}


def test_a_screen_reader_finds_names_and_is_told_of_changes(opened):
    seen = opened()
    for control in seen.page.locator("button, select, textarea, input, a").all():
        named = control.evaluate(
            "e => e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length"
        )
        assert named, control.evaluate("e => e.outerHTML")
    assert seen.translation.get_attribute("aria-live") == "polite"
    assert seen.page.locator("html").get_attribute("lang") == "en"


def test_colors_are_those_of_the_report():
    def palette(package, name):
        style = resources.files(package).joinpath(name).read_text(encoding="utf-8")
        return set(re.findall(r"--(?:text|quiet|line|back|card|accent|poor): #\w+", style))

    ours = palette("dragoman.serve", "page/page.css")
    assert ours
    assert ours == palette("dragoman.report", "page.css")
