from html.parser import HTMLParser

from check_worlds import host, names, ports, rates, result

from dragoman.check.result import Collective, Finding
from dragoman.check.webpage import to_html


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.loads = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.loads += [v for k, v in attrs if k in ("src", "href")]
        if tag == "td" and "cell" in values.get("class", ""):
            self.cells.append(values["class"])
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_pair_is_a_cell_whose_color_follows_its_share():
    page = Page(to_html(result(rates(ports(4, node3=100)))))
    assert page.open == []
    assert len(page.cells) == 12
    assert sum("poor" in kind for kind in page.cells) == 6


def test_it_loads_nothing_and_runs_nothing():
    text = to_html(result(rates(ports(4))))
    assert Page(text).loads == []
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_words_of_hosts_are_escaped():
    finding = Finding(subject="<b>", verdict="unfit", sentence="<script>alert(1)</script>")
    shown = result({}, [finding]).model_copy(update={"hosts": (host(device="<img src=x>"),)})
    text = to_html(shown)
    assert "<script>" not in text
    assert "<img" not in text


def test_many_hosts_and_one():
    assert "The slowest of all pairs" in to_html(result(rates(ports(20)), count=20))
    alone = to_html(result({}, count=1))
    assert "Bandwidth" not in alone
    assert names(1)[0] in alone


def test_an_all_reduce_is_shown():
    done = Collective(backend="gloo", ranks=4, elements=1000, seconds=(0.5,), latency_s=0.001)
    assert "gloo" in to_html(result({}).model_copy(update={"collective": done}))
