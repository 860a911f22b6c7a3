import pytest

from dragoman.report.content import EvidenceFigure
from dragoman.report.wording import figure_interval, figure_value, quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.8, "s", "1.8 s"),
        (0.0421, "s", "42.1 ms"),
        (9000.0, "s", "2 h 30 min"),
        (365.3e6, "bytes", "365.3 MB"),
        (1.88e9, "bytes", "1.88 GB"),
        (12.5e6, "bytes/s", "12.5 MB/s"),
        (0.714, "share", "71 %"),
        (-0.02, "share", "-2.0 %"),
        (4_524_868, "lines", "4,524,868 lines"),
        (1, "steps", "1 step"),
        (7182.4, "tokens", "7,182 tokens"),
        (1.6, "nats", "1.600 nats"),
        (26.44, "BLEU", "26.4 BLEU"),
        (28.756, "USD", "28.76 USD"),
        (9.88e-4, "", "9.88e-4"),
        (0.58123, "", "0.5812"),
        (60_880_896, "", "60,880,896"),
    ],
)
def test_a_quantity_is_told_as_finely_as_it_is_read(value, unit, text):
    assert quantity(value, unit) == text


def test_the_unit_of_an_interval_stands_once_where_it_does_not_change():
    figure = EvidenceFigure("gain", 0.4, "BLEU", 0.2, 0.6, "")

    assert figure_interval(figure) == "0.2 to 0.6 BLEU"


def test_units_that_change_with_the_size_stay_with_each_end():
    figure = EvidenceFigure("step", 1.0, "s", 0.9, 1.1, "")

    assert figure_interval(figure) == "900 ms to 1.1 s"


def test_a_figure_that_is_not_known_says_so():
    figure = EvidenceFigure("gain", None, "BLEU", None, None, "")

    assert (figure_value(figure), figure_interval(figure)) == ("not known", "")
