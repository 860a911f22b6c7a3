"""A tournament with hosts that are made up."""

import pytest
from check_worlds import MBIT

from dragoman.check.result import Transfer
from dragoman.check.tournament import Direction, round_robin
from dragoman.check.transfers import Shared, play, shared_findings
from dragoman.errors import RunError

NAMES = ["a", "b", "c", "d"]
ADDRESSES = {name: f"10.0.0.{number}" for number, name in enumerate(NAMES)}


class Made:
    """A session whose transfers follow a rule."""

    def __init__(self, name, rule):
        self.name, self.rule, self.loss = name, rule, None
        self.orders = []

    def order(self, order, **details):
        self.orders.append((order, details))
        self.rule.expected[details["secret"]] = self.name
        return len(self.orders)

    def answer(self, number, within_s):
        if self.rule.lost == self.name:
            self.loss = RunError(f"{self.name}: hangs")
            raise self.loss
        _, details = self.orders[number - 1]
        if details["secret"] not in self.rule.rates:
            return {"port": 1234}
        rate = self.rule.rates[details["secret"]]
        if rate is None:
            raise RunError(f"{self.name}: nobody has connected")
        return {"one_flow_bytes_per_s": rate, "several_flows_bytes_per_s": rate}

    def ask(self, order, within_s, **details):
        if self.rule.lost == self.name:
            self.loss = RunError(f"{self.name}: hangs")
            raise self.loss
        receiver = self.rule.expected[details["secret"]]
        rate = self.rule.rate(self.name, receiver)
        self.rule.rates[details["secret"]] = rate
        self.rule.asked.append((self.name, receiver))
        if rate is None:
            raise RunError(f"{self.name}: cannot connect")
        return {"round_trip_s": 1e-4}


class Rule:
    def __init__(self, rate, lost=None):
        self.rate, self.lost = rate, lost
        self.expected, self.rates, self.asked = {}, {}, []

    def sessions(self):
        return {name: Made(name, self) for name in NAMES}


def played(rule, **more):
    return play(rule.sessions(), ADDRESSES, round_robin(NAMES), **more)


def test_every_direction_is_measured_once_with_a_secret_of_its_own():
    rule = Rule(lambda sender, receiver: 100 * MBIT)
    done = played(rule)
    assert len(done.transfers) == 12
    assert len(rule.asked) == len(set(rule.asked)) == len(rule.rates) == 12
    assert done.failures == done.shared == ()


def test_a_pair_that_cannot_connect_is_a_failure_and_the_others_go_on():
    done = played(Rule(lambda a, b: None if {a, b} == {"a", "b"} else 100 * MBIT))
    assert {(f.sender, f.receiver) for f in done.failures} == {("a", "b"), ("b", "a")}
    assert len(done.transfers) == 10


def test_whoever_hangs_is_left_out_and_nobody_else_is_blamed():
    done = played(Rule(lambda a, b: 100 * MBIT, lost="c"))
    assert done.failures == ()
    assert all("c" not in (t.sender, t.receiver) for t in done.transfers)
    assert len(done.transfers) == 6


def test_a_suspicious_pair_is_measured_again_and_alone():
    slow_first = {("a", "b"): [10 * MBIT, 100 * MBIT]}
    rule = Rule(lambda a, b: slow_first[a, b].pop(0) if slow_first.get((a, b)) else 100 * MBIT)
    done = played(rule)
    assert rule.asked.count(("a", "b")) == 2
    assert all(t.one_flow_bytes_per_s == 100 * MBIT for t in done.transfers)
    assert done.shared == (Shared(Direction("a", "b"), 10 * MBIT, 100 * MBIT),)


def test_a_pair_that_stays_slow_stays_so():
    rule = Rule(lambda a, b: 10 * MBIT if (a, b) == ("a", "b") else 100 * MBIT)
    done = played(rule)
    assert rule.asked.count(("a", "b")) == 2
    assert done.shared == ()


def test_a_capped_port_is_not_measured_twice():
    rule = Rule(lambda a, b: 10 * MBIT if "c" in (a, b) else 100 * MBIT)
    played(rule)
    assert len(rule.asked) == 12


def test_two_hosts_are_measured_again_where_their_directions_differ():
    rule = Rule(lambda a, b: 10 * MBIT if (a, b) == ("a", "b") else 100 * MBIT)
    sessions = {name: session for name, session in rule.sessions().items() if name in "ab"}
    done = play(sessions, ADDRESSES, round_robin(["a", "b"]))
    assert rule.asked.count(("a", "b")) == 2
    assert [t for t in done.transfers if isinstance(t, Transfer)]


def test_it_stops_when_it_is_asked_to():
    with pytest.raises(RunError, match="stopped"):
        played(Rule(lambda a, b: MBIT), is_stopping=lambda: True)


def test_a_shared_uplink_is_told_only_if_there_was_company():
    shared = [Shared(Direction("a", "b"), 50 * MBIT, 100 * MBIT)]
    (finding,) = shared_findings(shared, had_company=True)
    assert finding.verdict == "warning"
    assert set(finding.hosts) == {"a", "b"}
    assert shared_findings(shared, had_company=False) == []
