from unit.report.fake_run import evaluated

from dragoman.telemetry.events import CheckpointSaved, Incident
from dragoman.watch import happenings


def test_a_start_names_its_hosts_and_few_of_many():
    first = happenings.started(5.0, 1, 1, 2, ["a", "b"])
    assert "began" in first.text
    assert "a and b" in first.text
    many = happenings.started(5.0, 2, 61, 8, [f"h{n}" for n in range(8)])
    assert "resumed at step 61" in many.text
    assert "4 more" in many.text
    assert "h7" not in many.text


def test_ends_are_good_or_bad_news():
    health = {
        state: happenings.ended(1.0, 1, 9, state, "because").health
        for state in ("finished", "preempted", "failed")
    }
    assert health == {"finished": "good", "preempted": "watch", "failed": "poor"}


def test_an_end_is_one_line_without_where_each_rank_stood():
    ended = happenings.ended(1.0, 1, 9, "failed", "lost rank 1\n  it stood at\n    forward")
    assert ended.text.endswith("after step 9: lost rank 1")


def test_a_lost_rank_has_its_name():
    assert "rank 3 on gamma" in happenings.lost(1.0, 1, 3, "gamma").text
    assert happenings.lost(1.0, 1, 3, "").text.endswith("rank 3")


def test_an_evaluation_has_its_scores_once_they_are_there():
    full = happenings.evaluated(1.0, evaluated(20, 31.25, bleu_low=30.0, bleu_high=32.5))
    assert "BLEU 31.2 (30.0 to 32.5)" in full.text
    assert "BLEU" not in happenings.evaluated(1.0, evaluated(20, None)).text


def test_incidents_that_cost_steps_are_worse_than_others():
    assert happenings.incident(1.0, Incident(3, "rollback", "went back")).health == "poor"
    other = happenings.incident(1.0, Incident(3, "other", "a save failed"), times=4)
    assert (other.health, "4 times" in other.text) == ("watch", True)


def test_a_save_says_how_much():
    saved = happenings.saved(1.0, CheckpointSaved(3, "step-00000003", 1_200_000, 0.1))
    assert saved.text == "saved step-00000003: 1.2 MB in 100 ms"
