import dataclasses

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


@pytest.mark.parametrize(
    ("starting_s", "advice"), [(49.0, "Starting took"), (24.0, "Evaluate"), (1.0, "Evaluate")]
)
def test_advice_is_against_what_takes_most_of_the_time(tmp_path, starting_s, advice):
    """Evaluating takes 25 s."""
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            (starting_s + 1.0, step(1, 1.0)),
            (starting_s + 26.0, dataclasses.replace(evaluated(1), seconds=25.0)),
            (starting_s + 51.0, step(2, 25.0)),
            (starting_s + 51.0, AttemptEnded(2, "finished", "done")),
        ]
    )

    assert duration.answer(read(run)).advice.startswith(advice)


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
