from check_worlds import MBIT, host, names, ports, rates, result

from dragoman.check.matrix import (
    Cell,
    by_severity,
    flops,
    host_row,
    matrix_of,
    slowest_ways,
    summary_of,
)
from dragoman.check.result import Finding


def test_the_unit_is_that_of_the_fastest_way():
    assert matrix_of(rates(ports(4)), names(4)).unit == "Mbit/s"
    assert matrix_of({("a", "b"): 9400 * MBIT, ("b", "a"): 94 * MBIT}, ["a", "b"]).rows == [
        [Cell("-", None), Cell("9.40", 1.0)],
        [Cell(".094", 0.01), Cell("-", None)],
    ]


def test_slow_ways_are_marked_without_colors():
    matrix = matrix_of(rates(ports(4, node3=100, node4=600)), names(4))
    row = dict(zip(matrix.hosts, matrix.rows[0], strict=True))
    assert (row["node2"].mark, row["node3"].mark, row["node4"].mark) == ("", "!!", "!")


def test_ways_that_were_not_measured_are_open():
    of = {("node1", "node2"): MBIT, ("node2", "node3"): MBIT, ("node3", "node1"): MBIT}
    assert matrix_of(of, names(4)).hosts == names(3)
    assert matrix_of(of, names(3)).rows[0][2].text == "?"


def test_two_digits_need_three_letters():
    of = rates(ports(4, node2=94, node3=9.4, node4=0.94))
    texts = [cell.text for row in matrix_of(of, names(4), digits=2).rows for cell in row]
    assert max(map(len, texts)) <= 3


def test_the_slowest_ways_come_first():
    assert slowest_ways(rates(ports(20, node7=10)))[0][2] < 2 * 10 * MBIT
    assert len(slowest_ways(rates(ports(20)))) == 20


def test_a_host_is_a_row_also_where_little_was_measured():
    row = host_row(host(gemm_flops_per_s=None, disk_bytes_per_s=None, clock_offset_s=-2.0))
    assert row[4] == row[5] == "-"
    assert row[7] == "-2 s"


def test_operations_have_their_unit():
    assert (flops(1.4e13), flops(2e10)) == ("14 TFLOP/s", "20 GFLOP/s")


def test_what_is_unfit_comes_first():
    given = [Finding(subject=v, verdict=v, sentence=".") for v in ("good", "unfit", "warning")]
    assert [f.verdict for f in by_severity(given)] == ["unfit", "warning", "good"]
    assert "1 unfit, 1 warning(s)" in summary_of(result({}, given))
    assert "all is well" in summary_of(result({}))
