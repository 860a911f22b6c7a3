import pytest

from dragoman.errors import UserError
from dragoman.lab.rates import (
    UNLIMITED,
    bucket,
    parse_direction,
    parse_rate,
    parse_size,
    rate_text,
)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("500kbit", 500_000),
        ("10mbit", 10_000_000),
        ("2.5gbit", 2_500_000_000),
        ("100Mbit", 100_000_000),
        ("none", UNLIMITED),
    ],
)
def test_a_rate_is_read_and_written_alike(text, bits):
    assert parse_rate(text) == bits
    assert rate_text(bits) == text.lower()


@pytest.mark.parametrize(
    "text", ["", "100", "mbit", "100mb", "-1mbit", "1e3mbit", "100 mbit/s", "1mbit 2", "fast"]
)
def test_nonsense_is_no_rate(text):
    with pytest.raises(UserError, match=r"kbit, mbit or gbit"):
        parse_rate(text)


def test_a_direction_is_one_of_three_words():
    words = ["both", "send", "receive"]
    assert [parse_direction(word) for word in words] == words
    with pytest.raises(UserError, match="send, receive or both"):
        parse_direction("sent")


@pytest.mark.parametrize("text", ["0mbit", "1kbit", "1000gbit"])
def test_a_rate_that_no_link_has_is_refused(text):
    with pytest.raises(UserError, match="from 10kbit to 100gbit"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["10kbit", "1mbit", "100mbit", "1gbit", "100gbit", "none"])
def test_a_bucket_lets_two_packets_pass_and_holds_what_it_lets_pass(text):
    rate, burst, host_queue, switch_queue = bucket(parse_rate(text))
    assert rate == parse_rate(text)
    assert 2 * 1514 < burst <= switch_queue <= host_queue


@pytest.mark.parametrize("text", ["1mbit", "10mbit", "1gbit"])
def test_a_burst_is_a_small_part_of_a_second(text):
    bits = parse_rate(text)
    assert bucket(bits).burst_bytes <= 0.04 * bits / 8


@pytest.mark.parametrize(
    ("text", "size"), [("50MB", 50_000_000), ("1.5gb", 1_500_000_000), ("200 KB", 200_000)]
)
def test_a_size_is_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "50", "50mbit", "1KB", "0MB", "-1GB"])
def test_nonsense_is_no_size(text):
    with pytest.raises(UserError, match="is not a disk size"):
        parse_size(text)
