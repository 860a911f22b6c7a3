import pytest
from unit.diagnosis.layout_run import write_layouts
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import evaluated, started

from dragoman.diagnosis.answers import network, step_time
from dragoman.telemetry.events import CheckpointSaved


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
    saves = [
        (10.0 + number, CheckpointSaved(number, f"step-{number}", 10, 1.0))
        for number in (9, 29, 49)
    ]
    run = write_steps(
        new_run(tmp_path),
        parts,
        beside=lambda rank, end: [(begun + 0.1, evaluated(20)), *saves] if rank == 0 else [],
    )
    found = step_time.answer(read(run))
    counts = {f.name: f.value for f in found.evidence if f.name.startswith("slow steps")}

    assert counts == {
        "slow steps: checkpoint": 3,
        "slow steps: data": 1,
        "slow steps: first step": 1,
        "slow steps: evaluation": 1,
    }
    assert "6 of 60 steps (10 %) took more than" in found.sentence
    # 4 s each, a hundredth of the time of steps that take 1.2 s without them
    (saving,) = found.advice
    assert saving.command.endswith("--set checkpoints.every_steps=340")
    assert saving.saves_s == pytest.approx(12.0 * (1 - 20 / 340))


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


def test_the_mean_is_that_of_the_usual_steps_as_in_the_answer_about_the_network(tmp_path):
    facts = read(
        write_steps(
            new_run(tmp_path),
            lambda _, number: with_parts(forward={1: 9.0, 30: 300.0}.get(number, 0.3)),
        )
    )
    found = step_time.answer(facts)

    assert found.verdict == "985 ms"
    assert figure(found, "mean step") == pytest.approx(0.985)
    assert figure(found, "mean step") == figure(network.answer(facts), "mean step")
    with_all = figure(found, "mean, first steps and hangs included")
    assert with_all == pytest.approx(0.985 + (8.7 + 299.7) / 60)


def test_runs_that_change_have_a_mean_for_each_number_of_hosts(tmp_path):
    facts = read(write_layouts(new_run(tmp_path), (2, 0.3), (4, 1.3), (3, 0.8), (2, 0.3)))
    found = step_time.answer(facts)

    assert found.verdict == "985 ms"  # that of two hosts, with which most steps were done
    assert figure(found, "mean step with 4 hosts") == pytest.approx(1.985)
    assert "4 hosts are slower and dearer than 2 hosts were" in found.sentence
    assert figure(found, "mean step") == figure(network.answer(facts), "mean step")
    assert "slow steps" not in " ".join(figure.name for figure in found.evidence)


@pytest.mark.parametrize(("steps", "has_percentiles"), [(4, False), (40, True)])
def test_few_steps_have_no_percentiles_in_words(tmp_path, steps, has_percentiles):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), steps=steps)

    assert ("95 of 100" in step_time.answer(read(run)).sentence) == has_percentiles
