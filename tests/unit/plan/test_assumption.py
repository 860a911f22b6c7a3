import pytest

from dragoman.errors import UserError
from dragoman.plan.assumption import parse_assumption


@pytest.mark.parametrize(
    "text",
    [
        "4 nodes, 1gbit, 14 TFLOP/s",
        "14 TFLOPS, 1 Gbit/s, 4 hosts",
        "4 machines,1000mbit,14tflop/s",
        " 1 Gbps , 14000 GFLOP/s, 4 nodes,",
    ],
)
def test_figures_may_stand_in_any_order_and_spelling(text):
    found = parse_assumption(text)

    assert (found.nodes, found.workers) == (4, 1)
    assert found.send_bits_per_s == found.receive_bits_per_s == 1e9
    assert found.flops_per_s == 14e12


def test_everything_that_can_be_said():
    found = parse_assumption(
        "2 nodes, 8 GPUs per node, 10gbit send, 1gbit receive, 0.2 ms, 14 TFLOP/s, 40 %, 16 GB, "
        "$0.53/h, gpu"
    )

    assert (found.nodes, found.workers) == (2, 8)
    assert (found.send_bits_per_s, found.receive_bits_per_s) == (10e9, 1e9)
    assert found.latency_s == pytest.approx(2e-4)
    assert (found.utilization, found.memory_bytes, found.price_per_hour) == (0.4, 16e9, 0.53)
    assert not found.is_cpu


def test_seconds_of_a_step_may_stand_for_a_speed():
    found = parse_assumption("4 nodes, 100mbit, 1.8 s, cpu")
    assert (found.computing_s, found.flops_per_s, found.is_cpu) == (1.8, None, True)


def test_one_node_needs_no_link():
    assert parse_assumption("1 node, 14 TFLOP/s").send_bits_per_s is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "nodes"),
        ("1gbit, 14 TFLOP/s", "nodes"),
        ("4 nodes, 14 TFLOP/s", "link"),
        ("4 nodes, 1gbit", "14 TFLOP/s"),
        ("4 nodes, fast, 14 TFLOP/s", "'fast'"),
        ("4 nodes, 1 gigabyte, 14 TFLOP/s", "'1 gigabyte'"),
        ("0 nodes, 14 TFLOP/s", "'0 nodes'"),
        ("1.5 nodes, 1gbit, 14 TFLOP/s", "1.5"),
        ("4 nodes, 1gbit, 900 PFLOP/s", "'900 PFLOP/s'"),
        ("4 nodes, 90tbit, 14 TFLOP/s", "90tbit"),
        ("4 nodes, 1kbit, 14 TFLOP/s", "1kbit"),
        ("4 nodes, 1gbit, 14 TFLOP/s, 1.8 s", "one"),
        ("4 nodes, 1gbit, 1.8 s, 40 %", "one"),
        ("4 nodes, 1gbit, 14 TFLOP/s, 0,53/h", "point"),
        ("4 nodes, 1gbit, 14 TFLOP/s, cpu, gpu", "kind of device"),
        ("4 nodes, 1gbit, 14 TFLOP/s, 1gbit", "second time"),
        ("4 nodes, 1gbit, 14 TFLOP/s, 20000 ms", "'20000 ms'"),
        ("4 nodes, 1gbit, 14 TFLOP/s, 5 nodes", "'5 nodes'"),
    ],
)
def test_what_cannot_be_read_is_absurd_or_missing_is_named(text, named):
    with pytest.raises(UserError) as refused:
        parse_assumption(text)

    assert named in str(refused.value)
    assert str(refused.value).startswith("--assume")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("rate", "bits"), [("400gbit", 4e11), ("1.6 Tbit/s", 1.6e12), ("800 Gbps", 8e11)]
)
def test_rates_of_the_fastest_clusters_are_read(rate, bits):
    assert parse_assumption(f"4 nodes, {rate}, 989 TFLOP/s").send_bits_per_s == bits


@pytest.mark.parametrize("micro", ["\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}", "u"])
def test_microseconds_are_read_with_either_letter(micro):
    found = parse_assumption(f"4 nodes, 1gbit, 14 TFLOP/s, 50 {micro}s")
    assert found.latency_s == pytest.approx(5e-5)


@pytest.mark.parametrize(
    ("price", "currency"),
    [("0.5/h", None), ("$0.5/h", "USD"), ("0.5 €/h", "EUR"), ("0.5 eur per hour", "EUR")],
)
def test_the_currency_of_a_price_is_kept(price, currency):
    assert parse_assumption(f"1 node, 1 TFLOP/s, {price}").currency == currency
