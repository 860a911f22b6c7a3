"""What a person sees who opens report.html: on a screen, in the dark, on a phone, on paper."""

import json

import pytest

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

EXPECTED_PLOTS = {
    "Attempts, and what ended them",
    "Validation loss",
    "BLEU of the validation set, with 95 % intervals",
    "Validation against a fixed sample of the training pairs, measured alike",
    "GPU, as the driver tells it: busy also while it waits for others",
    "CPU, all cores of a host",
    "Network of each host",
    "Learning rate",
    "Where the time of a step goes",
    "How long steps took",
    "Bytes that a step sends",
}
DRAWN = """plots => plots.map(plot => ({
    title: plot.parentElement.querySelector("h3").textContent,
    width: plot.querySelector(".main-svg").getBoundingClientRect().width,
    height: plot.querySelector(".main-svg").getBoundingClientRect().height,
    room: plot.getBoundingClientRect().width,
    shapes: plot.querySelectorAll(".scatterlayer path, .barlayer path").length,
}))"""

# The page's own listener is asked first, this one sees what it has done.
NOTE_AT_PRINT = """() => {
    window.look = () => ({
        widths: [...document.querySelectorAll(".plot")].map(
            plot => plot.querySelector(".main-svg").getBoundingClientRect().width),
        folds: [...document.querySelectorAll("details.more")].map(more => more.open),
    });
    window.before = JSON.stringify(window.look());
    addEventListener("beforeprint", () => { window.printed = window.look(); });
}"""
A4_BETWEEN_MARGINS_PX = 182 / 25.4 * 96


def lightness(color: str) -> float:
    """0 to 255, of rgb(1, 2, 3)."""
    parts = [float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3


def color_of(page, selector: str, name: str) -> float:
    script = "(element, name) => getComputedStyle(element)[name]"
    return lightness(page.locator(selector).first.evaluate(script, name))


def test_the_page_opens_without_a_complaint_and_loads_nothing(opened, report):
    seen = opened(viewport=WIDE).wait_for_plots()

    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_eleven_cards_show_the_verdicts_and_lead_to_their_questions(opened, report):
    answers = json.loads((report / "report.json").read_text())["answers"]
    page = opened(viewport=WIDE, reduced_motion="reduce").page
    cards = page.locator(".card")

    assert cards.count() == 11
    for place, answer in enumerate(answers):
        card = cards.nth(place)
        assert card.is_visible()
        assert card.locator(".verdict").inner_text() == answer["verdict"]
        # Not by color alone.
        assert card.locator(".sign").inner_text().strip()
        assert card.get_attribute("href") == f"#{answer['key']}"
        section = page.locator(f"section[id='{answer['key']}']")
        assert answer["question"] in section.locator("h2").inner_text()
        assert answer["sentence"] in section.inner_text()
    cards.last.click()
    assert page.url.endswith(f"#{answers[-1]['key']}")


def test_every_plot_is_drawn_and_has_something_in_it(opened):
    plots = opened(viewport=WIDE).wait_for_plots().page.locator(".plot").evaluate_all(DRAWN)

    assert {plot["title"] for plot in plots} >= EXPECTED_PLOTS
    for plot in plots:
        assert plot["width"] > 300, plot
        assert plot["height"] > 100, plot
        assert plot["shapes"] > 0, plot


def test_hovering_over_a_plot_tells_its_values(opened):
    page = opened(viewport=WIDE).wait_for_plots().page
    plot = page.locator("figure", has_text="BLEU of the validation set").locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    told = plot.locator(".hoverlayer text")
    told.first.wait_for()

    assert any(" to " in text for text in told.all_text_contents())


def test_in_the_dark_page_and_plots_are_dark(opened):
    page = opened(viewport=WIDE, color_scheme="dark").wait_for_plots().page

    assert color_of(page, "body", "backgroundColor") < 60
    assert color_of(page, "body", "color") > 180
    assert color_of(page, ".plot .xtick text", "fill") > 120
    assert color_of(page, ".plot .gridlayer path", "stroke") < 120


def test_plots_follow_when_the_system_turns_dark(opened):
    page = opened(viewport=WIDE, color_scheme="light").wait_for_plots().page
    before = color_of(page, ".plot .xtick text", "fill")
    page.emulate_media(color_scheme="dark")

    assert before < 120 < color_of(page, ".plot .xtick text", "fill")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_and_has_the_plots(opened, scheme):
    page = opened(viewport=WIDE, color_scheme=scheme).wait_for_plots().page
    page.emulate_media(media="print", color_scheme=scheme)
    plots = page.locator(".plot").evaluate_all(DRAWN)

    assert color_of(page, "body", "backgroundColor") > 250
    assert color_of(page, "body", "color") < 60
    assert color_of(page, ".plot .xtick text", "fill") < 120
    assert all(plot["shapes"] for plot in plots)
    assert not page.locator("nav").is_visible()


def test_printing_fits_plots_to_the_paper_and_unfolds_all_figures(opened):
    page = opened(viewport=WIDE).wait_for_plots().page
    page.evaluate(NOTE_AT_PRINT)
    before = page.evaluate("window.look()")
    page.pdf(format="A4")
    printed = page.evaluate("window.printed")

    assert all(width <= A4_BETWEEN_MARGINS_PX for width in printed["widths"])
    assert printed["folds"]
    assert all(printed["folds"])
    page.wait_for_function("() => JSON.stringify(window.look()) === window.before")
    assert not any(before["folds"])


def test_a_phone_needs_no_scrolling_to_the_side(opened):
    seen = opened(viewport=PHONE, is_mobile=True, has_touch=True).wait_for_plots()
    page = seen.page
    widest = page.evaluate("document.documentElement.scrollWidth")
    plots = page.locator(".plot").evaluate_all(DRAWN)

    assert widest <= PHONE["width"]
    assert all(plot["width"] <= plot["room"] + 1 for plot in plots)
    assert page.locator(".card").first.is_visible()


def test_without_scripts_all_but_the_plots_can_be_read(opened, report):
    answers = json.loads((report / "report.json").read_text())["answers"]
    page = opened(viewport=WIDE, java_script_enabled=False).page

    assert page.locator(".card").count() == 11
    assert answers[0]["sentence"] in page.locator("main").inner_text()
    assert "This plot needs JavaScript" in page.locator("figure").first.inner_text()


def test_a_click_copies_a_command_as_it_must_be_typed(opened, report):
    found = json.loads((report / "report.json").read_text(encoding="utf-8"))
    commands = {
        advice["command"]
        for answer in (*found["answers"], *found["also"])
        for advice in answer["advice"]
    }
    page = opened(permissions=["clipboard-read", "clipboard-write"]).wait_for_plots().page
    block = page.locator(".todo pre.command").first

    block.get_by_role("button").click()

    block.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") in commands


def test_a_reader_without_buttons_selects_a_command_with_a_click(opened):
    page = opened().wait_for_plots().page
    code = page.locator(".todo pre.command code").first

    code.click()

    assert page.evaluate("getSelection().toString()").strip() == code.text_content()


def test_a_phone_shows_the_whole_command(opened):
    page = opened(viewport=PHONE).wait_for_plots().page
    blocks = page.locator("pre.command")

    assert blocks.count()
    assert blocks.evaluate_all("blocks => blocks.every(b => b.scrollWidth <= b.clientWidth)")
