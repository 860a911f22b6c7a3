from dataclasses import replace

import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import started, step

from dragoman.diagnosis.speed.teams import teams_of


def test_a_run_on_two_hosts_is_projected_to_others(tmp_path):
    run = read(write_steps(new_run(tmp_path), lambda *_: with_parts(communication=5.0)))
    teams = teams_of(run)

    assert (teams.now.hosts, teams.members.ranks) == (2, 2)
    assert teams.measured == {}
    alone = teams.fastest_of_fewer()
    assert (alone.team.hosts, alone.is_measured) == (1, False)
    assert alone.team.step_s == pytest.approx(2 * 0.92 + 0.015)


def test_hosts_that_the_run_has_tried_are_measured_and_not_projected(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(communication=5.0))
    parts = with_parts(communication=0.0)
    seconds = sum(parts.values())
    again = [(n * seconds, step(60 + n, seconds, parts_s=dict(parts))) for n in range(1, 31)]
    run.with_events([(0.0, started(attempt=2, first_step=61)), *again], attempt=2)
    teams = teams_of(read(run))

    assert teams.now.hosts == 1
    found = teams.with_hosts(2)
    assert found.is_measured
    assert found.team.speed_up == pytest.approx(seconds / 5.935)
    assert not teams.with_hosts(3).is_measured


def test_smaller_micro_batches_are_reckoned_with_where_there_are_too_few(tmp_path):
    more = {"counts": {"positions": 4000.0, "source_tokens": 2000.0, "target_tokens": 2000.0}}
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=lambda *_: more)
    teams = teams_of(read(run))

    assert teams.members.micro_batches == 2  # they hold 4096 tokens of a side each
    assert teams.needed_micro_batches(2) == 2
    assert teams.needed_micro_batches(3) == 4


def test_nothing_is_said_of_a_network_that_was_not_recorded(tmp_path):
    parts = {name: s for name, s in with_parts().items() if name != "communication"}

    assert teams_of(read(write_steps(new_run(tmp_path), lambda *_: parts))) is None


def test_nothing_is_said_of_a_run_without_steps(tmp_path):
    assert teams_of(read(new_run(tmp_path))) is None


@pytest.mark.parametrize(("names", "is_projected"), [("aabb", True), ("aaab", False)])
def test_nothing_is_projected_from_hosts_that_differ(tmp_path, names, is_projected):
    parts = with_parts()
    seconds = sum(parts.values())
    run = new_run(tmp_path)
    for rank, name in enumerate(names):
        steps = [(10 + n * seconds, step(n, seconds, parts_s=parts)) for n in range(1, 31)]
        begun = replace(started(rank=rank, ranks=len(names)), host=name)
        run.with_events([(0.0, begun), *steps], rank=rank)

    assert (teams_of(read(run)) is not None) == is_projected
