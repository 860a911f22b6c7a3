import json
import time

from dragoman.cluster.job import Job
from dragoman.cluster.relay import RecordSender, Relay
from dragoman.cluster.ssh import read_message
from dragoman.rundir import RunDir


def sent(capsys):
    messages = map(read_message, capsys.readouterr().out.splitlines())
    return [message for message in messages if message != {"alive": True}]


def test_messages_arrive_in_order_and_none_is_left_behind(capsys):
    relay = Relay()
    for number in range(100):
        relay(rank=0, line=f"line {number}\nsecond")
    relay.close()
    assert [message["line"] for message in sent(capsys)] == [
        f"line {number}\nsecond" for number in range(100)
    ]


def test_a_run_s_records_are_sent_as_they_grow_and_from_where_home_has_them(tmp_path, capsys):
    run = RunDir(tmp_path)
    run.events.mkdir(parents=True)
    events = run.events / "attempt-001-rank-0000.jsonl"
    events.write_text('{"known": 1}\n{"new": 2}\n')
    known = {f"events/{events.name}": len('{"known": 1}\n')}
    relay = Relay()
    sender = RecordSender(relay)
    sender.follow(Job([], 1, "", run=str(run.root), known=known))
    sender.send_new()
    with events.open("a") as file:
        file.write('{"newer": 3}\n')
    sender.send_new()
    sender.follow(Job([], 1, ""))  # one without a run
    relay.close()
    pieces = sorted(sent(capsys), key=lambda piece: piece["begin"])
    assert pieces[0]["begin"] == known[f"events/{events.name}"]
    text = "".join(piece["text"] for piece in pieces)
    assert [json.loads(line) for line in text.splitlines()] == [{"new": 2}, {"newer": 3}]


def test_a_host_says_by_itself_that_it_is_alive(capsys):
    relay = Relay()
    RecordSender(relay)
    deadline = time.monotonic() + 60
    while "alive" not in capsys.readouterr().out:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    relay.close()
