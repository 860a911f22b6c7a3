import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import evaluated, started

from dragoman.diagnosis.answers import step_time


def test_slow_steps_have_their_causes(tmp_path):
    def parts(rank, number):
        if number == 1:
            return with_parts(forward=5.0)
        if number in (10, 30, 50):
            return with_parts(checkpoint=4.0)
        if number == 21:
            return with_parts(forward=2.0)
        if number == 40:
            return with_parts(data=7.0)
        return with_parts()

    begun = 10.0 + sum(sum(parts(0, number).values()) for number in range(1, 21))
    run = write_steps(
        new_run(tmp_path),
        parts,
        beside=lambda rank, end: [(begun + 0.1, evaluated(20))] if rank == 0 else [],
    )
    found = step_time.answer(read(run))
    counts = {f.name: f.value for f in found.evidence if f.name.startswith("slow steps")}

    assert counts == {
        "slow steps: checkpoint": 3,
        "slow steps: data": 1,
        "slow steps: first step": 1,
        "slow steps: evaluation": 1,
    }
    assert "6 of 60 steps took more than" in found.sentence
    assert "save less often" in found.advice


def test_one_slow_step_is_told_as_one_of_all(tmp_path):
    run = write_steps(
        new_run(tmp_path), lambda _, number: with_parts(forward=5.0 if number == 1 else 0.3)
    )

    assert step_time.answer(read(run)).sentence.endswith(
        " 1 of 60 steps took more than 1.5 times the median: the first of an attempt."
    )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.8, "1.80 s"), (31.02, "31.0 s"), (0.9431, "943 ms"), (0.9996, "1.00 s"), (123.4, "123 s")],
)
def test_the_mean_step_is_shown_with_three_digits(seconds, shown):
    assert step_time.in_three_digits(seconds) == shown


def test_a_run_without_steps_is_not_known(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = step_time.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence
