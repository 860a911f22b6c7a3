from dataclasses import replace

import pytest
from unit.report.fake_run import CONFIG, evaluated, started, step
from unit.watch.growing_run import MONOTONIC_AHEAD, NOW, reading, stamped, start, training

from dragoman.config import Config, parse_toml
from dragoman.diagnosis.run.record import Member
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    ClockOffset,
    ForecastMade,
    Incident,
    Stamped,
)
from dragoman.telemetry.record.status import Status
from dragoman.watch.live import LiveRun, Surroundings
from dragoman.watch.live_rank import WINDOW_S


def config(**changes):
    tree = parse_toml(CONFIG, "config")
    for key, value in changes.items():
        section, name = key.split("__")
        tree.setdefault(section, {})[name] = value
    return Config.model_validate(tree)


@pytest.fixture
def about(tmp_path):
    return Surroundings(RunDir(tmp_path / "run"), config(training__steps=1000))


def add(live, events, attempt=1, rank=0, is_anew=False, at=0.0, wall_ahead_s=MONOTONIC_AHEAD):
    lines = [stamped(when, event, wall_ahead_s) for when, event in events]
    live.add(attempt, rank, lines, is_anew, NOW + at)


def two_ranks(last=100, **changes):
    live = LiveRun()
    for rank in (0, 1):
        events = [start(-200, rank=rank), *training(1, last, **changes)]
        add(live, events, rank=rank)
    return live


def texts(now):
    return [happening.text for happening in now.happenings]


def test_epochs_and_hours_end_a_run_too(about):
    live = two_ranks()
    steps = live.now(NOW + 2, about)
    epoch = steps.epoch

    def now(**limits):
        return live.now(NOW + 2, replace(about, config=config(**limits)))

    both = now(training__steps=1000, training__epochs=5)
    assert both.planned_steps == min(1000, round(5 * 100 / epoch))
    alone = now(training__epochs=5, training__steps=10**9, training__hours=1.0)
    assert alone.left_s <= 3600
    assert now(training__steps=1000, training__hours=1000.0).left_s == steps.left_s
    short = now(training__steps=10**9, training__hours=0.1)
    assert short.left_s == short.left_low_s or short.left_low_s is None
    assert 0 < short.left_s < 360


def test_before_the_first_event_it_is_preparing(about):
    now = LiveRun().now(NOW, about)
    assert (now.state, now.step, now.left_s, now.ranks) == ("preparing", 0, None, [])


def test_a_run_that_trains(about):
    now = two_ranks().now(NOW + 2, about)
    assert (now.state, now.step, now.attempt, now.ranks_expected) == ("training", 100, 1, 2)
    assert now.loss == pytest.approx(-90.0)
    assert now.tokens_per_s == pytest.approx(100.0)
    assert [(r.host, r.step, r.silent_s) for r in now.ranks] == [
        ("host-0", 100, 2.0),
        ("host-1", 100, 2.0),
    ]
    assert now.ranks[0].parts_s == pytest.approx({"data": 0.25, "backward": 0.75})
    assert now.left_s == pytest.approx(900.0)


def test_time_left_has_an_interval_and_counts_evaluations(about):
    live = LiveRun()
    events = [(float(n - 60), step(n, 1.0 + 0.1 * (n % 3))) for n in range(1, 60)]
    add(live, [start(-200), *events, (0.0, evaluated(59, seconds=30.0))])
    every_100 = Surroundings(about.run, config(training__steps=1000, evaluation__every_steps=100))
    now = live.now(NOW, every_100)
    assert now.left_s == pytest.approx(941 * 1.1 + 10 * 30.0, rel=0.01)
    assert now.left_low_s < now.left_s < now.left_high_s


def test_a_run_that_ended_has_no_time_left(about):
    live = two_ranks()
    for rank in (0, 1):
        add(live, [(1.0, AttemptEnded(100, "finished", "done", "steps"))], rank=rank)
    now = live.now(NOW + 1e6, about)
    assert (now.state, now.left_s) == ("finished", None)
    assert [text for text in texts(now) if "finished" in text] == [
        "attempt 1 finished after step 100: done"
    ]


def test_a_lost_rank_is_named_as_the_others_name_it(about):
    live = two_ranks()
    end = AttemptEnded(100, "failed", "LostPeerError: gone", "lost-rank", 1, "host-1")
    add(live, [(1.0, end)])
    now = live.now(NOW + 2, about)
    assert now.state == "failed"
    assert "lost rank 1 on host-1" in texts(now)


def test_a_rank_that_reads_sensors_and_falls_silent_is_named_and_comes_back(about):
    live = LiveRun()
    for rank in (0, 1):
        cpu = [reading(float(at), cpu__percent=5.0) for at in range(-5, 0)]
        add(live, [start(-200, rank=rank), *training(1, 3, until=-5.0), *cpu], rank=rank)
    for at in range(14):
        add(live, [reading(float(at), cpu__percent=5.0)], rank=0, at=at)
        live.notice_silence(NOW + at)
    assert any("rank 1 on host-1 has fallen silent" in t for t in texts(live.now(NOW + 14, about)))
    add(live, [reading(15.0, cpu__percent=5.0)], rank=1, at=15)
    live.notice_silence(NOW + 15)
    assert "rank 1 on host-1 is back" in texts(live.now(NOW + 15, about))


def test_ranks_that_wait_for_an_evaluation_are_not_called_silent(about):
    live = two_ranks(until=-30.0)
    for at in range(-30, 1):
        add(live, [reading(float(at), cpu__percent=5.0)], rank=0, at=at)
        live.notice_silence(NOW + at)
    assert not any("silent" in text for text in texts(live.now(NOW, about)))


def test_ranks_whose_sensors_are_read_seldom_are_not_called_silent(about):
    """telemetry.sensors_every_s may be any number; an evaluation has no other events."""
    live = LiveRun()
    for rank in (0, 1):
        seldom = [reading(at, cpu__percent=5.0) for at in (-60.0, -40.0)]
        events = [start(-200, rank=rank), *training(1, 3, until=-61.0), *seldom]
        add(live, events, rank=rank, at=-40.0)
    for at in range(-39, 60):
        for rank in (0, 1):
            if at % 20 == 10 * rank:
                add(live, [reading(float(at), cpu__percent=5.0)], rank=rank, at=at)
        live.notice_silence(NOW + at)
    assert not any("silent" in text for text in texts(live.now(NOW, about)))


def test_long_silence_means_that_it_broke_off(about):
    live = two_ranks()
    assert live.now(NOW + 60, about).state == "training"
    assert live.now(NOW + 600, about).state == "broken off"


def test_once_a_file_grew_before_our_eyes_other_clocks_do_not_matter(about):
    live = LiveRun()
    add(live, [start(-300), *training(1, 9, until=-290.0)], at=0.0)
    now = live.now(NOW + 1, about)
    assert now.state == "training"
    assert now.ranks[0].silent_s == 1.0


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_host_whose_clock_is_hours_ahead_is_not_alive_for_hours_after_its_death(
    about, is_watched
):
    live, ahead_s = LiveRun(), 7200.0
    events = [start(ahead_s - 100), *training(1, 9, until=ahead_s)]
    add(live, events, is_anew=not is_watched)
    status = Status(state="training", attempt=1, step=9, heartbeat_at=NOW + ahead_s)
    assert live.now(NOW + 1, replace(about, status=status)).state == "training"
    assert live.now(NOW + 600, replace(about, status=status)).state == "broken off"


def test_a_heartbeat_that_goes_on_is_a_sign_of_life_by_whatever_clock(about):
    live = two_ranks()
    for at in range(0, 600, 2):
        status = Status(state="training", attempt=1, step=9, heartbeat_at=NOW + at - 7200)
        now = live.now(NOW + at, replace(about, status=status))
    assert now.state == "training"


def test_hosts_are_put_on_the_clock_of_rank_0(about):
    live = LiveRun()
    add(live, [start(-20), reading(-10.0, cpu__percent=5.0)])
    ahead_s = MONOTONIC_AHEAD + 50.0
    # The other host's wall clock is 3600 s ahead, its monotonic clock 50 s behind.
    events = [
        Stamped(NOW + 3600 - 20, NOW - 20 - ahead_s, started(rank=1, ranks=2)),
        Stamped(NOW + 3600 - 20, NOW - 20 - ahead_s, ClockOffset("host-1", 3600.0, -50.0, 0.001)),
        Stamped(NOW + 3600 - 10, NOW - 10 - ahead_s, reading(0, cpu__percent=7.0)[1]),
    ]
    live.add(1, 1, events, False, NOW)
    curves = {curve.host: curve for curve in live.now(NOW, about).hosts}
    assert curves["host-1"].at == pytest.approx(curves["host-0"].at, abs=0.01)
    assert curves["host-1"].mean == [7.0]


def test_sensors_become_curves_of_the_last_minutes(about):
    live = LiveRun()
    add(live, [start(-2000, ranks=1)])
    for at in range(-2000, 1):
        total = {"network__lo__sent_bytes_total": 5e6 * (2000 + at)}
        memory = {"memory__total_bytes": 8e9, "memory__available_bytes": 6e9}
        add(live, [reading(float(at), cpu__percent=50.0, **total, **memory)])
    curves = {curve.sensor: curve for curve in live.now(NOW, about).hosts}
    assert set(curves) == {"cpu", "network sent", "memory"}
    assert curves["network sent"].mean[-1] == pytest.approx(5e6)
    assert curves["memory"].mean[-1] == pytest.approx(25.0)
    assert curves["cpu"].at[0] >= NOW - WINDOW_S - 2
    assert len(curves["cpu"].at) <= 400


def test_the_last_minutes_stay_few_points_however_short_the_steps_are(about):
    live = LiveRun()
    add(live, [start(-5000), *training(1, 30_000, step_s=0.1)])
    recent = live.now(NOW, about).recent
    assert 250 <= len(recent.at) <= 301
    assert recent.at == sorted(recent.at)
    assert recent.step[-1] == 30_000
    assert recent.step_s[0] == pytest.approx(0.1)


def test_another_attempt_goes_on_in_the_same_curves(about):
    live = two_ranks(until=-50.0)
    add(live, [(-49.0, AttemptEnded(100, "preempted", "SIGTERM", "signal"))])
    add(live, [start(-30, 2, first_step=81), *training(81, 85)], attempt=2)
    now = live.now(NOW, about)
    assert (now.attempt, now.state, now.step, len(now.ranks)) == (2, "training", 85, 1)
    assert now.recent.step[-1] == 85
    assert 100 in now.recent.step
    assert [t.split(":")[0] for t in texts(now)] == [
        "attempt 1 began at step 1 with 2 ranks on host-0 and host-1",
        "attempt 1 was stopped after step 100",
        "attempt 2 resumed at step 81 with 2 ranks on host-0",
    ]


def test_what_every_rank_records_happens_once(about):
    live = two_ranks()
    for rank in (0, 1):
        add(
            live,
            [
                (0.1, Incident(90, "other", "[bold]odd[/bold]")),
                (0.2, Incident(91, "update-skipped", "not finite")),
                (0.3, Incident(92, "update-skipped", "not finite")),
                (0.4, evaluated(100, 31.0)),
                (0.5, CheckpointSaved(90, "step-90", 5, 0.1)),
                (0.6, CheckpointSaved(100, "step-100", 5, 0.1)),
            ],
            rank=rank,
        )
    now = live.now(NOW + 1, about)
    assert [t for t in texts(now) if "attempt" not in t] == [
        "step 90: [bold]odd[/bold]",
        "step 92: not finite (2 times)",
        "evaluated at step 100: validation loss 3.000, BLEU 31.0, the best so far",
        "saved step-100: 5 bytes in 100 ms",
    ]
    assert (now.bleu, now.bleu_step) == (31.0, 100)


def test_money_is_that_of_all_hosts_since_the_start(about):
    live = two_ranks()
    priced = Surroundings(about.run, config(training__steps=1000, cost__host_per_hour=36.0))
    assert live.now(NOW, priced).spent == pytest.approx(200 / 3600 * 2 * 36.0)
    assert live.now(NOW, about).spent is None
    made = ForecastMade(
        *(2, ["host-0", "host-1"], 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0),
        host_prices={"host-0": 36.0, "host-1": 72.0},
    )
    add(live, [(0.0, made)])
    assert live.now(NOW, about).spent == pytest.approx(200 / 3600 * 2 * 54.0)


def test_names_of_ranks_that_have_written_no_start_come_from_the_manifest(about):
    live = LiveRun()
    add(live, training(1, 3), rank=1)
    members = {1: [Member(host="alpha", device="cpu"), Member(host="beta", device="cpu")]}
    now = live.now(NOW, Surroundings(about.run, about.config, members))
    assert [(rank.rank, rank.host) for rank in now.ranks] == [(1, "beta")]
    assert now.ranks_expected == 2


def test_a_command_that_prepares_another_attempt_is_believed_for_a_while(about):
    live = two_ranks()
    add(live, [(0.1, AttemptEnded(100, "failed", "odd", "error"))])
    status = Status(state="preparing", heartbeat_at=NOW + 5)
    told = Surroundings(about.run, about.config, status=status)
    assert live.now(NOW + 6, told).state == "preparing"
    assert live.now(NOW + 6000, told).state == "failed"


def test_impossible_figures_are_left_out(about):
    live = two_ranks()
    add(live, [(0.0, step(101, -5.0)), (0.0, step(102, float("nan"))), (1e12, step(103))])
    now = live.now(NOW, about)
    assert now.step == 100
    assert now.model_dump_json()


def test_a_loss_that_is_no_number_is_not_shown_as_one(about):
    live = LiveRun()
    add(live, [start(-9), *training(1, 5, loss=float("nan"))])
    now = live.now(NOW, about)
    assert now.loss is None
    assert now.recent.loss == [None] * len(now.recent.at)
