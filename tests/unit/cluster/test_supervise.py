"""Members whose agents are small programs of this machine."""

import subprocess
import sys
import time

import pytest

from dragoman.cluster import supervise
from dragoman.cluster.hosts import Host
from dragoman.cluster.job import Job
from dragoman.cluster.launch import Orders
from dragoman.cluster.supervise import Member, Outcome
from dragoman.errors import RunError

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"


@pytest.fixture
def member():
    made = []

    def make(name="a", program=ECHO):
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        made.append(Member(Host(name=name), process, time.monotonic()))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.end()


def ended(member, code):
    member.process.wait()
    assert member.process.returncode == code
    return member


def test_a_job_names_the_port_that_leads_to_the_store_from_that_host(member):
    one = member()
    one.store_port = 4711
    one.begin(Job(["train"], 2, "secret", "start-1", first_rank=3))
    said = Job.from_line(one.process.stdout.readline())
    assert (said.store_port, said.arguments) == (4711, ["train"])
    assert (one.start, list(one.ranks)) == ("start-1", [3, 4])


def test_a_host_that_falls_silent_is_lost_and_its_ranks_are_named(member, monkeypatch):
    one, other = member("a"), member("b")
    one.ranks, one.has_reported = range(2, 4), True
    assert supervise._ended([one, other]) is None
    one.heard_at -= supervise.SILENCE_S + 1
    outcome = supervise._ended([one, other])
    assert (outcome.code, outcome.lost) == (1, {"a"})
    assert isinstance(outcome.error, RunError)
    assert "2, 3" in str(outcome.error)


def test_an_agent_gets_longer_for_its_first_word(member):
    one = member()
    one.heard_at -= supervise.SILENCE_S + 1
    assert not one.is_lost
    one.heard_at -= supervise.START_S
    assert one.is_lost


@pytest.mark.parametrize(("code", "lost"), [(255, {"a"}), (7, set())])
def test_a_connection_that_breaks_loses_the_host_and_an_agent_that_ends_does_not(
    member, code, lost
):
    one = ended(member(program=f"raise SystemExit({code})"), code)
    one.has_reported = True
    outcome = supervise._ended([one, member("b")])
    assert outcome.lost == lost
    assert str(outcome.error).startswith("a: ")


def test_workers_that_failed_have_said_why_themselves(member):
    one, other = member("a"), member("b")
    one.code = 2
    assert supervise._ended([one, other]) == Outcome(2)
    one.code = 0
    assert supervise._ended([one, other]) is None
    other.code = 0
    assert supervise._ended([one, other]) == Outcome(0)


def test_after_a_failure_the_others_are_told_and_waited_for(member):
    answers = "import sys\nfor line in sys.stdin: sys.exit(0 if line == 'end\\n' else 3)\n"
    one, other = member("a"), member("b", answers)
    one.code = 2
    outcome = supervise._watch([one, other], Orders(), lambda: False)
    assert (outcome.code, outcome.lost) == (2, frozenset())
    ended(other, 0)


def test_orders_of_a_person_reach_every_agent(member):
    members = [member("a"), member("b")]
    given = Orders()
    given.ask("Ctrl-C")
    given.ask("SIGTERM")
    supervise._attend(members, given)
    for one in members:
        assert [one.process.stdout.readline() for _ in range(2)] == ["stop: Ctrl-C\n", "kill\n"]
