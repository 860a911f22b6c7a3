import json
from pathlib import Path

from watched_runs import answer, loss_of, watched

from dragoman.watch.messages import (
    FORGOTTEN_AFTER_S,
    Ending,
    Message,
    Sent,
    message_schema,
    messages_of,
    trial_message,
)

NEW = Sent(attempts_before=0, had_begun=False)
RESUMED = Sent(attempts_before=3, had_begun=True)
SCHEMA = Path(__file__).parents[3] / "docs" / "notification.schema.json"


def sent_by(readings, sent=NEW):
    """All messages of some readings in a row; a reading may have an ending beside it."""
    messages = []
    for reading in readings:
        value, ending = reading if isinstance(reading, tuple) else (reading, None)
        new, sent = messages_of(value, sent, "desk", ending)
        messages += new
    return messages


def test_a_verdict_that_turns_bad_is_sent_once_with_what_to_do():
    good = watched(answer(verdict="compute-bound", health="good"), at=1000)
    bad = [watched(answer(command="dragoman train x"), at=at) for at in (1001, 1002)]
    (message,) = sent_by([good, *bad])
    assert message.kind == "verdict"
    assert (message.question, message.verdict) == ("network", "network-bound")
    assert message.command == "dragoman train x"
    assert message.text == (
        "demo, started on desk: Network: network-bound. The link is too slow. "
        "What to do: dragoman train x"
    )


def test_the_first_report_of_a_new_run_may_bring_bad_news():
    assert len(sent_by([watched(has_report=False, step=0), watched(answer())])) == 1


def test_what_was_bad_before_a_run_was_resumed_is_known():
    assert sent_by([watched(answer()), watched(answer())], RESUMED) == []
    late = [watched(has_report=False), watched(answer())]
    assert sent_by(late, RESUMED) == []
    other = watched(answer(), answer("overfitting", "yes"), at=1001)
    assert [m.question for m in sent_by([watched(answer()), other], RESUMED)] == ["overfitting"]


def test_a_verdict_that_comes_and_goes_is_sent_again_only_after_a_while():
    good = answer(verdict="compute-bound", health="good")
    soon, late = 1000 + FORGOTTEN_AFTER_S / 2, 1000 + 3 * FORGOTTEN_AFTER_S
    came_back = [watched(answer(), at=1000), watched(good, at=1001), watched(answer(), at=soon)]
    assert len(sent_by(came_back)) == 1
    came_late = [watched(answer(), at=1000), watched(good, at=1001), watched(answer(), at=late)]
    assert len(sent_by(came_late)) == 2


def test_a_verdict_that_stays_bad_for_hours_is_sent_once():
    assert len(sent_by([watched(answer(), at=at) for at in range(1000, 20_000, 60)])) == 1


def test_two_bad_verdicts_that_take_turns_are_two_messages():
    turns = [answer(verdict=name) for name in ("network-bound", "straggler") * 5]
    readings = [watched(each, at=1000 + at) for at, each in enumerate(turns)]
    assert [m.verdict for m in sent_by(readings)] == ["network-bound", "straggler"]


def test_what_a_few_more_steps_may_overturn_is_not_sent():
    assert sent_by([watched(answer(confidence="low")), watched(answer(health="watch"))]) == []


def test_a_lost_rank_is_sent_once_by_name():
    reading = watched(happenings=[loss_of("rank 1 on b")])
    (message,) = sent_by([reading, reading])
    assert (message.kind, message.lost) == ("lost", "rank 1 on b")
    assert "rank 1 on b was lost" in message.text


def test_the_same_rank_can_be_lost_twice():
    losses = [loss_of("rank 1 on b", attempt=1), loss_of("rank 1 on b", attempt=2)]
    both = watched(happenings=losses)
    assert len(sent_by([watched(happenings=losses[:1]), both])) == 2


def test_what_was_lost_before_is_known():
    assert sent_by([watched(happenings=[loss_of("rank 1 on b", attempt=3)])], RESUMED) == []


def test_a_loss_on_a_host_whose_clock_is_hours_behind_is_sent():
    """The moment of a loss is told by rank 0's clock."""
    loss = loss_of("rank 1 on b", attempt=4, at=1000.0 - 7200.0)
    (message,) = sent_by([watched(), watched(happenings=[loss])], RESUMED)
    assert message.lost == "rank 1 on b"


def test_the_end_comes_once_and_last_with_the_command_that_resumes():
    ended = watched(
        answer(), state="failed", state_command="dragoman train r", happenings=[loss_of("rank 0")]
    )
    messages = sent_by([(ended, Ending(code=1)), (ended, Ending(code=1))])
    assert [m.kind for m in messages] == ["lost", "verdict", "end"]
    assert (messages[-1].state, messages[-1].command) == ("failed", "dragoman train r")


def test_a_failed_attempt_is_no_end_while_its_launcher_lives():
    assert sent_by([watched(state="failed")]) == []


def test_a_killed_launcher_is_an_end():
    (message,) = sent_by([(watched(state="training"), Ending(code=None))])
    assert message.state == "broken off"
    assert "`dragoman train` was killed at step 10." in message.text


def test_an_error_before_the_first_step_is_an_end_with_its_sentence():
    ending = Ending(code=1, error="b cannot be reached; start it")
    (message,) = sent_by([(watched(state="preparing", step=0), ending)])
    assert message.state == "failed"
    assert "b cannot be reached; start it" in message.sentence


def test_what_is_refused_where_it_is_typed_sends_nothing():
    assert sent_by([(watched(state="training"), Ending(code=2, error="no"))]) == []


def test_messages_are_one_paragraph():
    message = trial_message("demo", "desk", 5.0)
    assert "\n" not in message.text
    assert Message.model_validate_json(message.model_dump_json()) == message


def test_the_schema_in_the_docs_is_that_of_the_messages():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == message_schema()
