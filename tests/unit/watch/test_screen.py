import pytest
from browser.invented_run import write_invented_run
from rich.cells import cell_len
from unit.watch import watched_values
from unit.watch.growing_run import NOW, append, new_run, reading, start, training

from dragoman.config import load_config
from dragoman.telemetry.events import Incident
from dragoman.watch.analysis import make
from dragoman.watch.content import VerdictChange, Watched
from dragoman.watch.event_tail import EventTail
from dragoman.watch.live import LiveRun, Surroundings
from dragoman.watch.screen import screen_of, shown, sparkline


def watched(run, at=NOW, changes=(), trouble=""):
    live = LiveRun()
    for added in EventTail(run).added():
        live.add(*added, at)
    made = make(run)
    about = Surroundings(run, load_config(run.config), report=made.report, trouble=trouble)
    return Watched(now=live.now(at, about), report=made.report, changes=list(changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return watched(write_invented_run(tmp_path_factory.mktemp("runs") / "run").directory)


@pytest.fixture
def in_progress(tmp_path):
    run = new_run(tmp_path / "run")
    text = run.config.read_text().replace("steps = 4", "steps = 1000")
    run.config.write_text(text + "\n[cost]\nhost_per_hour = 3.6\n")
    for rank in (0, 1):
        sensors = [
            reading(
                float(at),
                cpu__percent=41.0,
                network__eth0__sent_bytes_total=5e6 * (at + 60),
                network__eth0__received_bytes_total=4e6 * (at + 60),
            )
            for at in range(-50, 1)
        ]
        events = [start(-120, rank=rank), *training(1, 100), *sensors]
        append(run, events, rank=rank)
    return run


def plain(every, width, height, **options):
    return [line.plain for line in screen_of(every, width, height, **options)]


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (200, 60), (20, 5), (132, 40), (1, 1)])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_screen_has_exactly_the_size_of_its_terminal(finished, size, runs):
    width, height = size
    lines = plain([finished] * runs, width, height)
    assert len(lines) <= height
    assert {cell_len(line) for line in lines} == {width}


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_what_matters_stays_on_a_small_screen(in_progress, size):
    text = "\n".join(plain([watched(in_progress)], *size))
    assert "tiny" in text
    assert "training" in text
    assert "step 100 of 1,000" in text
    assert "15 min left" in text
    assert "loss" in text
    assert "Fully trained?" in text


def test_a_screen_shows_all_that_is_known(in_progress):
    text = "\n".join(plain([watched(in_progress)], 180, 50))
    for words in ("0.24 USD so far", "tokens/s", "backward 75 %", "host-1", "CPU  41 %", "5 MB/s"):
        assert words in text
    assert "attempt 1 began" in text


def test_answers_stand_with_the_moment_of_their_change(finished):
    change = VerdictChange(
        key="trained",
        title="Fully trained?",
        verdict="yes",
        health="good",
        sentence="",
        before="not yet",
        at=finished.now.at,
    )
    text = "\n".join(plain([finished.model_copy(update={"changes": [change]})], 140, 60))
    answers = {answer.key: answer for answer in finished.report.answers}
    assert all(answer.verdict in text for answer in answers.values())
    assert f"{answers['trained'].verdict} since " in text


def test_what_needs_action_comes_first(finished):
    answers = [
        answer.model_copy(update={"health": "poor", "verdict": "network-bound"})
        if answer.key == "network"
        else answer
        for answer in finished.report.answers
    ]
    report = finished.report.model_copy(update={"answers": answers})
    lines = plain([finished.model_copy(update={"report": report})], 80, 12)
    assert any("network-bound" in line for line in lines)


def test_text_of_the_data_is_shown_as_text(in_progress):
    evil = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 \u202eright to left\n\r end"
    append(in_progress, [(0.5, Incident(100, "other", evil))])
    lines = plain([watched(in_progress, trouble=evil)], 180, 50)
    text = "\n".join(lines)
    assert "[bold red]x[/]" in text
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(text)
    assert all("\n" not in line for line in lines)


def test_several_runs_stand_side_by_side_or_below_each_other(finished):
    other = finished.model_copy(update={"now": finished.now.model_copy(update={"name": "second"})})
    beside = plain([finished, other], 200, 40)
    assert "tiny" in beside[0]
    assert "second" in beside[0]
    below = plain([finished, other], 80, 40)
    assert "second" not in below[0]
    assert "second" in below[20]


def test_a_silent_worker_is_named(in_progress):
    live = LiveRun()
    for added in EventTail(in_progress).added():
        live.add(*added, NOW)
    now = live.now(NOW + 33, Surroundings(in_progress))
    text = "\n".join(plain([Watched(now=now, report=None, changes=[])], 100, 40))
    assert "1 host-1" in text
    assert "silent for 33 s" in text


def test_a_worker_that_waits_for_an_evaluation_is_not_called_silent():
    """Only the first worker of a host reads sensors; the others record nothing meanwhile."""
    ranks = [watched_values.rank(0, "a"), watched_values.rank(1, "a", silent_s=90.0)]
    waiting = Watched(now=watched_values.now(ranks=ranks), report=None, changes=[])
    assert "silent" not in "\n".join(plain([waiting], 100, 40))
    ranks[1] = watched_values.rank(1, "a", silent_s=90.0, is_silent=True)
    lost = Watched(now=watched_values.now(ranks=ranks), report=None, changes=[])
    assert "silent for 1 min 30 s" in "\n".join(plain([lost], 100, 40))


def test_a_terminal_without_other_characters_gets_ascii(finished):
    assert all(line.isascii() for line in plain([finished], 140, 50, is_ascii=True))


def test_before_the_first_report_the_screen_says_so(finished):
    text = "\n".join(plain([finished.model_copy(update={"report": None})], 80, 24))
    assert "is being made" in text


def test_sparklines():
    assert sparkline([1.0, 2.0, 3.0], 3) == "▁▅█"
    assert sparkline([5.0, 5.0], 2) == "▁▁"
    assert sparkline([None, 1.0, 2.0], 3) == " ▁█"
    assert sparkline([None], 3) == sparkline([], 3) == ""
    assert len(sparkline([float(n) for n in range(500)], 20)) == 20


def test_what_would_steer_a_terminal_is_taken_out():
    assert shown("a\tb\nc") == "a b c"
    assert shown("\x9b31m") == "�31m"
    assert shown("größer 漢字 😀") == "größer 漢字 😀"
