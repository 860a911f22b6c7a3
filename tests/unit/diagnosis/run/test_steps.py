import math

import numpy as np
import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import started, step


def anatomy(run):
    return read(run).step_parts


def mean_of(found):
    return found.mean(np.flatnonzero(found.usual))


def test_the_spread_of_ready_times_is_waiting_and_what_follows_the_last_is_the_networks(tmp_path):
    waits = {0: 0.50, 1: 0.10, 2: 0.30}
    computes = {0: 0.6, 1: 1.0, 2: 0.8}
    run = write_steps(
        new_run(tmp_path),
        lambda rank, _: with_parts(communication=waits[rank], backward=computes[rank]),
        ranks=3,
    )
    found = anatomy(run)
    split = mean_of(found)

    assert split.network_s == pytest.approx(0.10)
    assert split.straggling_s == pytest.approx(0.40)
    assert {rank: s[0] for rank, s in found.waits_s.items()} == pytest.approx(
        {0: 0.40, 1: 0.0, 2: waits[2] - waits[1]}
    )
    assert split.compute_s == pytest.approx(0.3 + 0.6 + 0.02)  # of rank 0, which waits longest
    assert split.busy_s == pytest.approx(0.3 + 0.8 + 0.02)  # of all in the mean
    parts = split.compute_s + split.network_s + split.straggling_s + split.data_s + split.rest_s
    assert parts == pytest.approx(split.step_s)


def test_a_rank_whose_all_reduce_returns_early_is_not_what_the_others_wait_for(tmp_path):
    """Rank 2 has its sums soon, and waits for the others in the small message."""
    communication = {0: 0.50, 1: 0.45, 2: 0.12}
    run = write_steps(
        new_run(tmp_path),
        lambda rank, _: with_parts(
            communication=communication[rank], agreement=0.51 - communication[rank]
        ),
        ranks=3,
    )
    split = mean_of(anatomy(run))

    assert split.network_s == pytest.approx(0.50)
    assert split.straggling_s == pytest.approx(0.0)
    assert split.small_message_s == pytest.approx(0.01)
    parts = split.compute_s + split.network_s + split.data_s + split.rest_s
    assert parts == pytest.approx(split.step_s)


def test_a_rank_that_ends_a_step_late_begins_the_next_one_late(tmp_path):
    """Only the update of rank 1 is slow; the others wait for it in the step after."""
    slow_s = 0.2
    run = write_steps(
        new_run(tmp_path),
        lambda rank, _: with_parts(
            optimizer=0.02 + slow_s * rank, communication=0.05 + slow_s * (1 - rank)
        ),
    )
    split = mean_of(anatomy(run))

    assert split.straggling_s == pytest.approx(slow_s)
    assert split.network_s == pytest.approx(0.05)


def test_a_rank_that_pauses_where_nothing_is_timed_is_waited_for_all_the_same(tmp_path):
    paused_s = {0: 0.0, 1: 0.4}
    run = write_steps(
        new_run(tmp_path),
        lambda rank, _: with_parts(
            communication=0.05 + paused_s[1 - rank], rest=0.005 + paused_s[rank]
        ),
        more=lambda rank, _: {"ready_s": 0.93 + paused_s[rank]},
    )
    split = mean_of(anatomy(run))

    assert split.straggling_s == pytest.approx(0.4)
    assert split.network_s == pytest.approx(0.05)


def test_only_steps_that_all_ranks_have_recorded_are_taken(tmp_path):
    run = new_run(tmp_path)
    for rank, numbers in ((0, (1, 2, 3, 4)), (1, (2, 3, 5))):
        events = [(float(n), step(n, parts_s=dict(with_parts()))) for n in numbers]
        run.with_events([(0.0, started(rank=rank, ranks=2)), *events], rank=rank)

    assert anatomy(run).step.tolist() == [2, 3]


def test_a_rank_that_left_no_file_is_told(tmp_path):
    run = write_steps(new_run(tmp_path), lambda rank, _: with_parts(), ranks=2)
    run.with_events([(0.0, started(ranks=3)), (1.0, step(1, parts_s=dict(with_parts())))])

    assert anatomy(run).missing_ranks == {1: 1}


def test_communication_that_was_not_recorded_is_not_known_and_not_zero(tmp_path):
    def parts(rank, number):
        return {name: s for name, s in with_parts().items() if name != "communication"}

    found = anatomy(write_steps(new_run(tmp_path), parts))

    assert np.isnan(found["network_s"]).all()
    assert math.isnan(found.mean(np.arange(3)).straggling_s)
    assert all(np.isnan(waited_s).all() for waited_s in found.waits_s.values())


def test_one_rank_waits_for_nobody(tmp_path):
    found = anatomy(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=1))

    assert not found["network_s"].any()
    assert not found["straggling_s"].any()


def test_the_first_step_of_an_attempt_and_hangs_tell_nothing_about_the_others(tmp_path):
    def parts(rank, number):
        return with_parts(communication={1: 30.0, 20: 900.0}.get(number, 0.05))

    found = anatomy(write_steps(new_run(tmp_path), parts))

    assert found.step[~found.usual].tolist() == [1, 20]
    assert found.mean(np.flatnonzero(found.usual)).network_s == pytest.approx(0.05)


def test_the_last_rank_may_be_late_because_of_its_data(tmp_path):
    def parts(rank, number):
        return with_parts(data=0.5 if rank == 1 else 0.0, communication=0.1 if rank == 1 else 0.6)

    split = anatomy(write_steps(new_run(tmp_path), parts)).mean(np.arange(5))

    assert split.late_data_s == pytest.approx(0.5)
