import pytest
from unit.diagnosis.ring_run import ring

from dragoman.diagnosis.speed.cap_turns import MOVES
from dragoman.diagnosis.speed.causes import causes_of
from dragoman.diagnosis.speed.overview import speed_of


def caps(facts):
    speed = speed_of(facts)
    found = causes_of(facts, speed, speed.bottleneck)
    turns = [(list(t.cap.hosts), t.since_step, t.until_step) for t in found.cap_turns]
    return found, turns


def test_a_port_that_is_slow_all_the_time_has_no_turns(tmp_path):
    found, turns = caps(ring(tmp_path, lambda number: 1, hosts=4, slow_s=2.0, steps=120))

    assert (list(found.cap.hosts), turns) == (["host-1"], [])
    assert len(found.held_rows) == 119  # the first one finds memory


@pytest.mark.parametrize("moved", [30, 60, 95])
def test_a_cap_that_moves_is_told_with_its_step_and_the_present_host_is_blamed(tmp_path, moved):
    facts = ring(tmp_path, lambda n: 0 if n <= moved else 2, hosts=4, slow_s=2.0, steps=120)
    found, turns = caps(facts)

    assert turns == [(["host-0"], None, moved), (["host-2"], moved + 1, None)]
    assert list(found.cap.hosts) == ["host-2"]
    assert len(found.held_rows) == 120 - moved


def test_a_cap_that_moves_again_and_again_is_nobodys(tmp_path):
    facts = ring(tmp_path, lambda n: (n - 1) // 25 % 4, hosts=4, slow_s=2.0, steps=200)
    found, turns = caps(facts)

    assert (list(found.cap.hosts), found.cap.hop, turns) == ([], None, [])
    assert (found.cap.reason, found.cap.is_sure) == (MOVES, False)


def test_a_cap_that_moves_after_a_pause_is_told_with_both_of_its_bounds(tmp_path):
    """To half a window of the phases, of ten steps."""

    def capped(number):
        return 0 if number <= 80 else 2 if number > 120 else None

    _, turns = caps(ring(tmp_path, capped, hosts=4, slow_s=2.0, steps=200))

    assert [hosts for hosts, _, _ in turns] == [["host-0"], ["host-2"]]
    assert abs(turns[0][2] - 80) <= 5
    assert abs(turns[1][1] - 121) <= 5
