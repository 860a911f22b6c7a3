import json
import re

import pytest

from dragoman.config import load_config
from dragoman.plan.page import to_html
from dragoman.plan.plan import plan_from_assumption

CONFIG = load_config("wmt16-en-de")
PAGE = to_html(plan_from_assumption(CONFIG, "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h"))
# Of the page itself, without the plotting library.
OWN = PAGE[: PAGE.index("</main>")]


def test_the_page_has_plots_of_hosts_links_and_learning_rate():
    plots = re.findall(r'<script type="application/json">(.*?)</script>', OWN)
    drawn = [json.loads(plot) for plot in plots]

    assert len(drawn) == 3
    assert drawn[1]["layout"]["xaxis"]["type"] == "log"
    assert max(drawn[2]["data"][0]["y"]) == pytest.approx(9.882e-4, rel=1e-3)


def test_the_page_loads_nothing():
    assert not re.findall(r'(?:src|href)="(?!#)', OWN)
    assert "default-src 'none'" in OWN


def test_what_a_user_wrote_is_shown_and_not_obeyed():
    config = load_config("wmt16-en-de", {"cost.currency": "<b>EUR</b>"})
    page = to_html(plan_from_assumption(config, "4 nodes, 1gbit, 14 TFLOP/s, 0.5/h"))
    assert "<b>EUR" not in page[: page.index("</main>")]


def test_one_worker_has_a_page_too():
    page = to_html(plan_from_assumption(CONFIG, "1 node, 14 TFLOP/s"))
    assert "Plan of wmt16-en-de" in page
