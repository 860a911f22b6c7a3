from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis.answers import hangs
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved, SensorReading


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
    found = hangs.answer(read(run))

    assert found.verdict == "1 time"
    assert figure(found, "after step 3") == figure(found, "stood still") == 996.0


def test_evaluations_and_saves_are_no_hangs(tmp_path):
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

    assert hangs.answer(read(run, 1002.0)) is None


def test_a_run_that_stands_still_now_hangs_though_its_sensors_go_on(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2, 3)),
            *((float(s), SensorReading({"cpu/percent": 3.0})) for s in range(4, 2400)),
        ]
    )
    found = hangs.answer(read(run, 2401.0))

    assert found.verdict == "hangs now"
    assert "since step 3" in found.sentence
    command = found.advice[0].command
    assert command.startswith("dragoman train ")
    assert command.endswith(f"--run {run.directory.root}")


def test_a_killed_run_did_not_hang(tmp_path):
    assert hangs.answer(read(write_steps(new_run(tmp_path), lambda *_: with_parts()))) is None


def test_a_step_that_took_an_hour_is_a_hang(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda rank, number: with_parts(communication=3600.0 if number == 30 else 0.05),
    )

    assert "after step 29 (waiting for the network)" in hangs.answer(read(run)).sentence


def test_a_hang_that_nothing_explains_has_no_cause(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda rank, number: with_parts(forward=3600.0 if number == 30 else 0.3),
    )

    assert hangs.answer(read(run)).sentence == "Nothing happened for 1 h after step 29."
