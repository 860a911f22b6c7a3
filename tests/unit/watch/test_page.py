import json
import re

import pytest
from unit.report.fake_run import FakeRun, evaluated, started, step
from unit.watch.watched_values import AT, HOSTS, now, rank, watched, with_verdict

from dragoman.report.write import read_report
from dragoman.telemetry.events import AttemptEnded
from dragoman.watch.content import Happening, RecentSteps, VerdictChange
from dragoman.watch.page import PageWriter, clock

ATTACK = '<script>alert("1")</script><img src=x>'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    run = FakeRun(tmp_path_factory.mktemp("runs") / "run").with_manifest()
    steps = [(float(number), step(number)) for number in range(1, 5)]
    end = AttemptEnded(4, "finished", "training.steps = 4 are done")
    run.with_events([(0.0, started()), *steps, (5.0, evaluated(4)), (6.0, end)])
    return read_report(run.directory)


def parts_of(shown):
    return PageWriter("run1-").parts(shown)


def figures_in(html: str):
    found = re.findall(r'<script type="application/json">(.*?)</script>', html)
    return [json.loads(text) for text in found]


def test_the_state_has_the_figures_in_words():
    html = parts_of(watched())["state"]

    for text in (
        "tiny",
        "training",
        "of 1,000",
        "23 min 20 s",
        "21 min 40 s to 25 min",
        "12.50 USD",
    ):
        assert text in html
    for text in ("3.250", "21.4", "at step 280", "4.00e-4", "12,346", "1.96 s"):
        assert text in html
    assert 'aria-valuenow="300"' in html


def test_what_is_not_known_is_left_out_or_a_dash():
    unknown = dict.fromkeys(
        ("planned_steps", "left_s", "spent", "loss", "bleu", "bleu_step", "epoch", "tokens_per_s")
    )
    html = parts_of(
        watched(**unknown, ranks=[], recent=RecentSteps(at=[], step=[], loss=[], step_s=[]))
    )

    assert "progressbar" not in html["state"]
    assert "Time left" not in html["state"]
    assert "Spent" not in html["state"]
    assert html["state"].count("<dd>-</dd>") == 3
    assert html["recent"] == html["ranks"] == ""


def test_no_text_of_a_run_becomes_markup(report):
    attacked = with_verdict(
        report, "network", verdict=ATTACK, plain=ATTACK, sentence=ATTACK, question=ATTACK
    )
    change = VerdictChange(
        key="network", title=ATTACK, verdict=ATTACK, health="poor", sentence=ATTACK,
        before=ATTACK, at=AT,
    )  # fmt: skip
    texts = dict.fromkeys(("name", "run", "sentence", "trouble", "currency"), ATTACK)
    shown = watched(
        attacked,
        [change],
        **texts,
        ranks=[rank(0, ATTACK, parts_s={ATTACK: 1.0})],
        happenings=[Happening(at=AT, text=ATTACK, health="poor")],
    )

    html = "".join(parts_of(shown).values())

    assert "<script>" not in html
    assert "<img" not in html
    assert html.count("&lt;script&gt;") > 10


def test_each_worker_has_a_bar_with_the_name_of_its_host():
    (figure,) = figures_in(parts_of(watched())["ranks"])

    assert figure["data"][0]["y"] == ["rank 0, alder", "rank 1, birch"]
    assert [trace["name"] for trace in figure["data"]][:2] == ["waiting for data", "forward"]


def test_charts_of_the_last_minutes_share_one_time_axis():
    parts = parts_of(watched())
    figures = figures_in(parts["recent"] + parts["hosts"])
    ranges = {tuple(figure["layout"]["xaxis"]["range"]) for figure in figures}

    assert len(figures) == 6
    assert len(ranges) == 1
    names = [trace["name"] for figure in figures[2:] for trace in figure["data"] if "name" in trace]
    assert all(any(host in name for name in names) for host in HOSTS)


def test_cards_tell_since_when_and_what_was_before(report):
    changes = [
        VerdictChange(
            key=key, title=key, verdict="x", health=health, sentence="", before=before, at=AT
        )
        for key, before, health in (
            ("network", "compute-bound", "poor"),
            ("traffic", "", "good"),
            ("duration", "", "fact"),
        )
    ]
    html = parts_of(watched(report, changes))["cards"]

    assert html.count('class="card ') == 11
    assert f"since {clock(AT)}; before: compute-bound" in html
    assert html.count(f"since {clock(AT)} or longer") == 1  # a figure changes all the time
    assert 'href="#run1-network"' in html


def test_every_answer_and_appendix_has_a_section_that_its_card_leads_to(report):
    parts = parts_of(watched(report))
    sections = "".join(parts.values())

    for answer in report.answers:
        assert f'<section id="run1-{answer.key}"' in sections
    assert "Attempts, and what ended them" in parts["time line"]
    assert "Hallo." in parts["samples"]
    assert "appendix evaluations" in parts


def test_without_a_report_the_page_says_that_it_is_coming_unless_it_cannot_come():
    assert "worked out" in parts_of(watched())["cards"]
    troubled = parts_of(watched(trouble="runs/tiny: is of a newer version"))
    assert troubled["cards"] == ""
    assert "is of a newer version" in troubled["state"]
    assert 'role="alert"' in troubled["state"]


def test_what_has_not_changed_is_not_written_again(report):
    writer = PageWriter("")
    first = writer.parts(watched(report))
    later = writer.parts(watched(report, at=AT + 1.0))
    moved = writer.parts(watched(report, at=AT + 2.0, step=301))

    assert all(later[name] is html for name, html in first.items())
    assert [name for name, html in moved.items() if html is not first[name]] == ["state"]


def test_a_run_without_a_worker_or_a_step_has_a_page():
    empty = now(state="preparing", step=0, ranks=[], hosts=[], happenings=[], ranks_expected=0)
    assert "preparing" in PageWriter("").parts(watched().model_copy(update={"now": empty}))["state"]
