import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis.answers import duration
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved


def test_a_pause_after_an_attempt_that_ended_well_is_nobodys(tmp_path):
    run = new_run(tmp_path)
    ended = AttemptEnded(1, "finished", "done")
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, ended)])
    run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)

    assert duration.answer(read(run)).verdict == "3 s"


def test_costs_count_the_hosts_of_each_attempt(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts())
    run.directory.config.write_text(
        run.directory.config.read_text() + '\n[cost]\nhost_per_hour = 3600.0\ncurrency = "EUR"\n'
    )
    facts = read(run)
    found = duration.answer(facts)

    assert figure(found, "cost") == pytest.approx(2 * facts.attempts[0].wall_s)
    assert "EUR" in found.sentence


def test_a_running_run_has_taken_so_long_so_far(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts())

    assert "so far" in duration.answer(read(run, 75.0)).sentence


def with_evaluations(run, every, steps=100):
    """Steps of one second, and evaluations of ten."""
    events, at = [(0.0, started())], 0.0
    for number in range(1, steps + 1):
        at += 1.0
        events.append((at, step(number, 1.0)))
        if number % every == 0:
            at += 10.0
            events.append((at, evaluated(number, seconds=10.0)))
    run.with_events([*events, (at, AttemptEnded(steps, "finished", "done"))])
    config = run.directory.config
    config.write_text(f"{config.read_text()}\n[evaluation]\nevery_steps = {every}\n")
    return run


def test_an_interval_is_advised_with_which_evaluating_takes_little(tmp_path):
    found = duration.answer(read(with_evaluations(new_run(tmp_path), every=5)))

    # Every 200 steps it would take a twentieth, but eight evaluations should be left of 100 steps.
    assert [advice.command for advice in found.advice] == ["evaluation.every_steps = 12"]
    assert found.advice[0].saves_s == pytest.approx(200 * (1 - 5 / 12))


def test_what_takes_much_time_beside_the_steps_is_in_the_plain_sentence(tmp_path):
    found = duration.answer(read(with_evaluations(new_run(tmp_path), every=5)))

    assert found.plain.endswith(" of the time went to evaluating.")


def test_few_evaluations_become_smaller_ones(tmp_path):
    run = with_evaluations(new_run(tmp_path), every=20)
    config = run.directory.config
    config.write_text(f"{config.read_text()}beam = 4\n")
    found = duration.answer(read(run))

    assert [advice.command for advice in found.advice] == ["evaluation.beam = 1"]


@pytest.mark.parametrize(("every", "steps"), [(50, 100), (1, 3)])
def test_little_evaluating_and_few_steps_get_no_advice(tmp_path, every, steps):
    assert not duration.answer(read(with_evaluations(new_run(tmp_path), every, steps))).advice


def test_waiting_is_priced(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(communication=17.0))
    config = run.directory.config
    config.write_text(config.read_text() + "\n[cost]\nhost_per_hour = 3600.0\n")
    facts = read(run)
    found = duration.answer(facts)
    waited_s = 60 * (17.0 + 0.01)

    assert figure(found, "cost of waiting") == pytest.approx(2 * waited_s, rel=0.01)
    assert figure(found, "waiting") == pytest.approx(waited_s, rel=0.01)
    assert "94 % of that paid for waiting" in found.plain
    assert "for the network" in found.sentence


def test_without_a_price_waiting_is_told_in_hours(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(communication=120.0))
    found = duration.answer(read(run))

    assert "of that time (2 h) was waiting: 99 % for the network" in found.sentence
    assert "cost of waiting" not in [figure.name for figure in found.evidence]


def test_a_save_at_the_end_is_no_time_of_its_own(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [(0.0, started()), (1.0, step(1)), (3.0, CheckpointSaved(1, "step-00000001", 10, 2.0))]
    )
    found = duration.answer(read(run, 4.0))

    assert figure(found, "writing checkpoints") == 2.0
    assert figure(found, "wall time") == 3.0


def test_a_run_without_steps_is_not_known(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])
    found = duration.answer(read(run))

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert "no step has been recorded" in found.sentence
