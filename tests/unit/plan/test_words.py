import pytest

from dragoman.plan.content import Figure, Input
from dragoman.plan.words import input_text, short_money, short_name, with_interval


def figure(value, low, high):
    return Figure(value=value, low=low, high=high, is_measured=True, basis="")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((3.1, 2.8, 3.5), "3.1 s (2.8 to 3.5 s)"),
        ((0.5, 0.4, 1.2), "500 ms (400 ms to 1.2 s)"),
        ((90.0, 50.0, 100.0), "1 min 30 s (50 s to 1 min 40 s)"),
    ],
)
def test_an_interval_names_its_unit_once_where_that_is_clear(values, text):
    assert with_interval(figure(*values)) == text


def test_rates_are_told_as_links_are_sold():
    given = Input(name="link", unit="bytes/s", figure=figure(1.25e8, 1e8, 1.5e8))
    assert input_text(given) == "1 Gbit/s (800 Mbit/s to 1.2 Gbit/s)"


def test_names_of_modes_can_be_short():
    assert short_name("local local_steps=8 wire=4bit group=host") == "local 8 4bit host"


def test_large_sums_are_short():
    assert [short_money(value) for value in (None, 586.5, 72_794_512.0)] == ["-", "586", "72.8 M"]
