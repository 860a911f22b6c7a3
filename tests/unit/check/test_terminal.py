import pytest
from check_worlds import names, ports, rates, result

from dragoman.check.result import Collective, Finding
from dragoman.check.terminal import lines_of

LONG = "node3 sends at 94 Mbit/s to everyone, the others at 940: its port is set to 100. " * 3


def texts(of, width=80):
    return [line.plain for line in lines_of(of, width)]


@pytest.mark.parametrize("count", [2, 4, 9, 16])
def test_it_fits_into_80_columns(count):
    finding = Finding(subject="port", verdict="unfit", sentence=LONG, hosts=("node3",))
    lines = texts(result(rates(ports(count)), [finding], count))
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("count", [2, 4, 16])
def test_every_pair_has_its_figure(count):
    lines = texts(result(rates(ports(count)), count=count))
    begin = next(i for i, line in enumerate(lines) if line.startswith("Bandwidth"))
    rows = lines[begin + 2 : begin + 2 + count]
    assert [row.split().count("-") for row in rows] == [1] * count
    assert sum(row.count("956") for row in rows) == count * (count - 1)


def test_of_many_hosts_the_slowest_pairs_are_listed():
    lines = texts(result(rates(ports(30, node7=10)), count=30))
    assert any("node7 to" in line and "9.56 Mbit/s" in line for line in lines)
    assert not any(line.startswith("Bandwidth") for line in lines)


def test_slow_pairs_can_be_told_without_colors():
    lines = texts(result(rates(ports(4, node3=100))))
    assert sum(line.count("!!") for line in lines if line.startswith("node")) == 6


def test_what_is_unfit_stands_first_and_last():
    finding = Finding(subject="port", verdict="unfit", sentence="node3 is slow.")
    lines = texts(
        result(rates(ports(4)), [Finding(subject="a", verdict="good", sentence="."), finding])
    )
    assert lines[0].startswith("✗ port")
    assert "1 unfit" in lines[-1]


def test_one_machine_has_no_pairs():
    lines = texts(result({}, count=1))
    assert any(line.startswith(names(1)[0]) for line in lines)
    assert not any("Bandwidth" in line for line in lines)


def test_an_all_reduce_is_shown():
    done = Collective(backend="gloo", ranks=4, elements=1000, seconds=(0.5, 0.4), latency_s=0.001)
    shown = result(rates(ports(4))).model_copy(update={"collective": done})
    assert any("gloo" in line and "400 ms" in line for line in texts(shown))
