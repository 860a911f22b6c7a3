import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.step_split import split

from dragoman.diagnosis.speed.work_shares import WorkShares, work_shares


def counts(positions):
    return lambda rank, number: {
        "counts": {
            "positions": positions[rank],
            "source_tokens": 0.4 * positions[rank],
            "target_tokens": 0.6 * positions[rank],
        }
    }


def three_ranks(folder, slow):
    """Of which the third has twice the work, and one is slow."""
    return write_steps(
        new_run(folder),
        lambda rank, _: with_parts(
            backward=1.6 if rank == slow else 0.6, communication=0.05 if rank == slow else 1.05
        ),
        ranks=3,
        more=counts([1000, 1000, 2000]),
    )


def test_work_that_does_not_divide_evenly_explains_the_waiting(tmp_path):
    """Four micro-batches on three ranks."""
    shares = work_shares(read(three_ranks(tmp_path, slow=2)))

    assert shares.by_rank == {0: 1000, 1: 1000, 2: 2000}
    assert shares.padded_tokens == pytest.approx(0.6 * 4000)
    own = split(compute_s=1.0, straggling_s=1.0)._replace(busy_s=4 / 3)
    assert shares.waiting_s(own) == pytest.approx(1.0)
    assert shares.explain(own)
    assert not shares.explain(split(compute_s=1.0, straggling_s=5.0))


def test_a_slow_rank_with_little_work_is_not_excused_by_the_work_of_others(tmp_path):
    shares = work_shares(read(three_ranks(tmp_path, slow=0)))

    assert shares.of_waiting == 0.0
    assert not shares.explain(split(compute_s=1.0, straggling_s=1.0)._replace(busy_s=4 / 3))


def test_even_work_explains_nothing(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=counts([1000, 1020]))

    assert not work_shares(read(run)).explain(split(straggling_s=0.01))


def test_work_that_was_not_recorded_explains_nothing(tmp_path):
    shares = work_shares(read(write_steps(new_run(tmp_path), lambda *_: with_parts())))

    assert shares == WorkShares({}, 0.0, 0.0, 0.0)
    assert not shares.explain(split(straggling_s=0.5))
