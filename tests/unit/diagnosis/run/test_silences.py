import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis.run.silences import Silence
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved


def test_a_long_silence_between_steps_is_a_hang(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2, 3)),
            (1000.0, step(4)),
            (1001.0, AttemptEnded(4, "finished", "done")),
        ]
    )
    (silence,) = read(run).silences

    assert silence == Silence(1, 3, 996.0, is_last=False, is_step=False)


def test_work_of_any_kind_is_no_silence(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2, 3)),
            (803.0, evaluated(3, seconds=800.0)),
            (1000.0, CheckpointSaved(3, "step-00000003", 10, 190.0)),
            (1001.0, step(4)),
        ]
    )

    assert read(run, 1002.0).silences == []


def test_an_attempt_that_goes_on_is_silent_until_it_is_read(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3))])

    assert read(run, 103.0).silences == [Silence(1, 3, 100.0, is_last=True, is_step=False)]
    assert read(run, 100_000.0).silences == []  # it was killed


@pytest.mark.parametrize(
    ("slow", "waited_for"), [("communication", "the network"), ("data", "data"), ("forward", "")]
)
def test_a_step_that_took_an_hour_is_a_silence_with_what_it_waited_for(tmp_path, slow, waited_for):
    run = write_steps(
        new_run(tmp_path),
        lambda rank, number: with_parts(**({slow: 3600.0} if number == 30 else {})),
    )
    (silence,) = read(run).silences

    assert (silence.step, silence.is_step, silence.waited_for) == (29, True, waited_for)
    assert silence.seconds > 3600.0
