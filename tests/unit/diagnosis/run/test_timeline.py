import json
import math
from pathlib import Path

import pytest
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.diagnosis.run.record import read_run
from dragoman.diagnosis.run.timeline import RunTimeline, timeline_of
from dragoman.errors import ConfigError, UserError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    ClockOffset,
    DeviceFound,
    Incident,
    SensorReading,
    Stamped,
    to_line,
)


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def history(run: FakeRun, read_s_after_start: float = 5000.0) -> RunTimeline:
    return timeline_of(read_run(run.directory, read_at=WALL_AT + read_s_after_start))


def losses(found: RunTimeline) -> dict[int, float]:
    return dict(zip(found.steps["step"].tolist(), found.steps["loss"].tolist(), strict=True))


def test_steps_after_the_checkpoint_that_the_next_attempt_went_on_from_are_lost(run):
    run.with_events([(0.0, started()), *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4))])
    run.with_events([(0.0, started(attempt=2, first_step=3)), (1.0, step(3, loss=5.0))], attempt=2)
    found = history(run)

    assert losses(found) == {1: 9.0, 2: 9.0, 3: 5.0}
    assert found.attempts[0].lost_steps == 2
    assert found.attempts[0].lost_s == 2.0
    assert found.attempts[0].last_step == 4


def test_an_attempt_that_goes_back_has_its_later_steps_counted(run):
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4)),
            (5.0, evaluated(4, bleu=99.0)),
            (6.0, step(3, loss=5.0)),
            (7.0, step(4, loss=4.0)),
            (8.0, evaluated(4, bleu=20.0)),
        ]
    )
    found = history(run)

    assert losses(found) == {1: 9.0, 2: 9.0, 3: 5.0, 4: 4.0}
    assert found.attempts[0].lost_steps == 2
    assert [e.bleu for e in found.evaluations] == [20.0]
    assert found.attempts[0].lost_s == 2 * 1.0 + 2.0


def test_a_run_that_went_back_twice_in_one_attempt(run):
    order = [1, 2, 3, 4, 5, 3, 4, 2, 3]
    events = [(float(at), step(n, loss=float(at))) for at, n in enumerate(order)]
    run.with_events([(0.0, started()), *events])

    assert losses(history(run)) == {1: 0.0, 2: 7.0, 3: 8.0}


def test_an_evaluation_that_a_resumed_run_repeats_counts_once(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, evaluated(1, bleu=1.0))])
    run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, evaluated(1, bleu=2.0)), (2.0, step(2))],
        attempt=2,
    )

    assert [(e.step, e.bleu) for e in history(run).evaluations] == [(1, 2.0)]


def test_attempts_may_have_different_ranks_and_hosts(run):
    for rank in (0, 1, 2):
        run.with_events([(0.0, started(rank=rank, ranks=3)), (1.0, step(1))], rank=rank)
    run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)
    found = history(run)

    assert [attempt.ranks for attempt in found.attempts] == [3, 1]
    assert [a.host_names for a in found.attempts] == [["host-0", "host-1", "host-2"], ["host-0"]]
    steps = {rank: table["step"].tolist() for rank, table in found.steps_by_rank.items()}
    assert steps == {0: [1, 2], 1: [1], 2: [1]}


def test_what_the_lowest_rank_lacks_is_taken_from_the_others(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1)), (3.0, step(3))])
    run.with_events(
        [(0.0, started(rank=1, ranks=2)), *((float(n), step(n, loss=1.0)) for n in (1, 2, 3, 4))],
        rank=1,
    )

    assert losses(history(run)) == {1: 9.0, 2: 1.0, 3: 7.0, 4: 1.0}


def test_a_run_whose_rank_0_has_left_no_file_is_that_of_rank_1(run):
    run.with_events([(0.0, started(rank=1, ranks=2)), (1.0, step(1)), (2.0, step(2))], rank=1)
    found = history(run)

    assert list(losses(found)) == [1, 2]
    assert found.attempts[0].ranks == 2
    assert found.attempts[0].wall_s == 2.0


def test_an_attempt_that_says_nothing_of_its_start_takes_nothing_from_the_ones_before(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    run.with_events([(0.0, Incident(0, "other", "no memory"))], attempt=2)
    found = history(run)

    assert list(losses(found)) == [1, 2]
    assert found.attempts[1].first_step == 3


def test_a_wall_clock_that_is_set_during_the_run_changes_no_duration(run):
    path = run.directory.events_of(1, 0)
    path.parent.mkdir()
    path.write_text(
        to_line(Stamped(WALL_AT, 500.0, started()))
        + to_line(Stamped(WALL_AT - 7200, 501.0, step(1)))
        + to_line(Stamped(WALL_AT + 7200, 502.0, step(2)))
    )
    found = history(run)

    assert found.attempts[0].wall_s == 2.0
    assert found.attempts[0].ended_at == WALL_AT + 2.0
    assert list(losses(found)) == [1, 2]


def test_a_host_whose_clock_is_ahead_does_not_keep_a_dead_run_alive(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1))])
    run.with_events(
        [
            (3600.0, started(rank=1, ranks=2)),
            (3600.5, ClockOffset("host-1", 3600.0, 3600.0, 0.001)),
            (3601.0, step(1)),
        ],
        rank=1,
    )
    found = history(run, read_s_after_start=1000.0)

    assert found.silent_s == 999.0
    assert found.attempts[0].state == "broken off"


def test_torn_lines_and_unknown_kinds_are_counted_and_passed_over(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    path = run.directory.events_of(1, 0)
    path.write_text(
        path.read_text()
        + json.dumps({"kind": "from-the-future", "wall_at": 1.0, "monotonic_at": 900.0})
        + '\n{"kind":"step","wall_at":17'
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert list(losses(timeline_of(record))) == [1, 2]
    assert any("2 lines are torn or of a kind" in sentence for sentence in record.unreadable)


def test_events_with_a_field_of_another_type_are_counted_and_passed_over(run):
    events = [Incident(1, "other", "odd"), evaluated(1), Incident(2, "other", "even"), evaluated(2)]
    run.with_events([(0.0, started()), *((float(n), event) for n, event in enumerate(events, 1))])
    path = run.directory.events_of(1, 0)
    text = path.read_text().replace('"odd"', '["a", "list"]')
    path.write_text(text.replace('"samples":[', '"samples":[7,', 1))
    record = read_run(run.directory, read_at=WALL_AT)
    found = timeline_of(record)

    assert found.attempts[0].incidents == [Incident(2, "other", "even")]
    assert [evaluation.step for evaluation in found.evaluations] == [2]
    assert any("2 lines are torn or of a kind" in sentence for sentence in record.unreadable)


def test_a_device_is_known_by_rank(run):
    gpu = DeviceFound("cuda:0", "A100", "bf16", 3.12e14, None)
    run.with_events([(0.0, started()), (0.5, gpu), (1.0, step(1))])

    assert history(run).attempts[0].devices == {0: gpu}


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_run_without_any_event_has_an_empty_history(run, has_folder):
    if has_folder:
        run.directory.events.mkdir()
        run.directory.events_of(1, 0).write_text("")
    found = history(run)

    assert found.attempts == []
    assert len(found.steps) == 0
    assert found.steps_by_rank == {}
    assert found.evaluations == []


def test_the_first_to_end_gives_the_reason_on_one_clock(run):
    run.with_events([(0.0, started(ranks=2)), (9.0, AttemptEnded(1, "failed", "lost rank 1"))])
    run.with_events(
        [(0.0, started(rank=1, ranks=2)), (9.0, AttemptEnded(1, "failed", "no memory"))], rank=1
    )
    attempt = history(run).attempts[0]

    assert [end.rank for end in attempt.ends] == [0, 1]
    assert (attempt.state, attempt.reason) == ("failed", "rank 0: lost rank 1")


def test_losses_that_are_no_numbers_stay_where_they_are(run):
    run.with_events([(0.0, started()), (1.0, step(1, loss=math.nan)), (2.0, evaluated(1, None))])
    found = history(run)

    assert math.isnan(found.steps["loss"][0])
    assert found.evaluations[0].bleu is None


def test_settings_from_a_newer_version_are_left_out_and_named(run):
    config = run.directory.config
    config.write_text(
        config.read_text() + 'shiny = 3\nprecision = "fp4"\n\n[teleport]\nenabled = true\n'
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert record.config.training.steps == 4
    assert record.config.training.precision == "fp32"
    text = "\n".join(record.unreadable)
    assert "unknown key training.shiny" in text
    assert "training.precision = 'fp4'" in text
    assert "unknown key teleport" in text
    assert len(record.unreadable) == 3


def test_a_source_from_a_newer_version_is_left_out_where_others_remain(run):
    config = run.directory.config
    config.write_text(
        config.read_text().replace("train = [", 'train = [{ kind = "telepathy", mind = "open" }, ')
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert len(record.config.data.train) == 1
    assert len(record.unreadable) == 1


@pytest.mark.parametrize("text", ["not toml [", 'name = "x"\n'])
def test_settings_that_cannot_be_understood_at_all_are_refused_in_one_sentence(run, text):
    run.directory.config.write_text(text)

    with pytest.raises(ConfigError) as refusal:
        read_run(run.directory, read_at=WALL_AT)
    assert "\n" not in str(refusal.value)


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is not a run directory"):
        read_run(RunDir(tmp_path), read_at=0.0)


def test_a_name_with_a_flipped_byte_costs_that_line_only(run):
    readings = [(float(n), SensorReading({"rank/0/cpu_percent": 50.0})) for n in (1, 2, 3)]
    run.with_events([(0.0, started()), *readings, (4.0, step(1))])
    path = run.directory.events_of(1, 0)
    path.write_bytes(path.read_bytes().replace(b"cpu_percent", b"cpu_perc\xd8nt", 1))
    record = read_run(run.directory, read_at=WALL_AT)

    assert len(record.tables[SensorReading]) == 2
    assert list(losses(timeline_of(record))) == [1]


def test_a_clock_that_was_compared_with_rubbish_moves_no_event(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1))])
    rubbish = ClockOffset("host-1", math.nan, math.nan, math.nan)
    run.with_events([(0.0, started(rank=1, ranks=2)), (0.5, rubbish), (1.0, step(1))], rank=1)
    found = history(run)

    assert found.steps_by_rank[1]["at"].tolist() == [WALL_AT + 1.0]
