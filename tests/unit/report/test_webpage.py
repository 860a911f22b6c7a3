import plotly.offline
from unit.report.fake_run import FakeRun, evaluated, started, step
from unit.report.rendered import Page, attacked, documents

from dragoman.telemetry.events import AttemptEnded, Incident


def test_no_text_of_a_run_becomes_markup_in_the_page(empty_run, tmp_path):
    plain = FakeRun(tmp_path / "plain").with_manifest()
    sample = {"source": "a", "translation": "a", "reference": "b"}
    plain.with_events(
        [
            (0.0, started()),
            (1.0, step(1, parts_s={"a": 1.0})),
            (2.0, Incident(1, "other", "a")),
            (3.0, evaluated(1, samples=[sample])),
            (4.0, AttemptEnded(1, "failed", "a")),
        ]
    )
    page, expected = Page(documents(attacked(empty_run))[0]), Page(documents(plain)[0])

    assert page.tags == expected.tags
    assert page.text.count('<script>alert("1")</script>') >= 4


def test_the_page_loads_nothing(finished_run):
    html, _, _ = documents(finished_run)
    page = Page(html)

    assert [address for address in page.addresses if not address.startswith("#")] == []
    assert "link" not in page.tags
    assert "img" not in page.tags
    own = html.replace(plotly.offline.get_plotlyjs(), "")
    assert "http://" not in own
    assert "https://" not in own
    assert "@import" not in own
    assert "default-src 'none'" in own


def test_the_plotting_library_is_embedded_once(finished_run):
    html, _, _ = documents(finished_run)

    assert html.count(plotly.offline.get_plotlyjs()) == 1
