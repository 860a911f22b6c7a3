import pytest

from dragoman.diagnosis.phrasing import (
    bit_rate,
    count,
    plain_name,
    quantity,
    rate,
    scientific,
    seconds,
    size,
    there_are,
)


@pytest.mark.parametrize(
    ("number_of_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999.4, "999 bytes"),
        (999.6, "1 kB"),
        (12_345, "12.3 kB"),
        (999_600, "1 MB"),
        (255e6, "255 MB"),
        (999.4e6, "999 MB"),
        (999.6e6, "1 GB"),
        (1.88e9, "1.88 GB"),
        (999.6e9, "1 TB"),
        (12_345e12, "12,345 TB"),
    ],
)
def test_a_size_has_three_digits_and_a_unit_that_fits_them(number_of_bytes, text):
    assert size(number_of_bytes) == text


def test_rates_too():
    assert rate(12.5e6) == "12.5 MB/s"
    assert bit_rate(12.5e6) == "100 Mbit/s"
    assert bit_rate(124.96e6) == "1 Gbit/s"


def test_a_rate_of_nothing_is_zero():
    assert scientific(0.0) == "0"
    assert scientific(9.881e-4) == "9.88e-4"


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (0.0, "0 s"),
        (42e-6, "42 µs"),
        (0.0421, "42.1 ms"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (9000.0, "2 h 30 min"),
        (102_090.0, "1 d 4 h 22 min"),
    ],
)
def test_a_short_time_has_three_digits_and_a_long_one_the_units_of_a_clock(time_s, text):
    assert seconds(time_s) == text


def test_one_is_singular_and_thousands_have_commas():
    assert [count(1, "step"), count(1234, "step"), count(1234)] == [
        "1 step",
        "1,234 steps",
        "1,234",
    ]
    assert there_are(1, "step") == "there is 1 step"
    assert there_are(0, "step") == "there are 0 steps"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.8, "s", "1.8 s"),
        (0.0421, "s", "42.1 ms"),
        (9000.0, "s", "2 h 30 min"),
        (365.3e6, "bytes", "365 MB"),
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
        (0.3, "EUR", "0.30 EUR"),
        (0.00042, "EUR", "0.00042 EUR"),
        (0.0, "USD", "0.00 USD"),
        (0.00004, "share", "under 0.1 %"),
        (9.88e-4, "", "9.88e-4"),
        (0.58123, "", "0.5812"),
        (60_880_896, "", "60,880,896"),
    ],
)
def test_a_quantity_is_told_as_finely_as_it_is_read(value, unit, text):
    assert quantity(value, unit) == text


def test_ranks_are_workers_in_plain_words():
    assert plain_name("for rank 9 on node-c, not for ranks") == (
        "for worker 9 on node-c, not for workers"
    )
