import pytest

from dragoman.diagnosis.phrasing import bit_rate, rate, scientific, size


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
