"""Which hosts a run starts with again, and when it does not."""

import threading

import pytest

from dragoman.cluster import elastic
from dragoman.cluster.elastic import next_candidates, start_until_done
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.launch import Orders
from dragoman.cluster.preflight import Facts, Ready
from dragoman.cluster.supervise import Outcome
from dragoman.errors import RunError, UserError
from dragoman.rundir import RunDir, write_json

NAMES = ("a", "b", "c")
FACTS = {
    name: Facts(name, f"/{name}", "1", "code", "3.11", "2.13", 0, 2, [], 10**9, f"data of {name}")
    for name in NAMES
}


def cluster_of(*names, min_hosts=2):
    return Cluster(hosts=tuple(Host(name=name) for name in names), min_hosts=min_hosts)


class World:
    """Starts end as they are told to; what each was given is remembered."""

    def __init__(self, folder, *endings, min_hosts=2, back=()):
        self.run = RunDir(folder)
        self.cluster = cluster_of(*NAMES, min_hosts=min_hosts)
        self.given = Orders()
        self.started, self.known = [], []
        self._endings, self._back = list(endings), back
        self.step = 0

    def gather_hosts(self, candidates, known):
        self.known.append(set(known))
        facts = {host.name: FACTS[host.name] for host in candidates.hosts}
        return Ready(candidates, facts, {}, {})

    def start(self, ready, poller):
        self.started.append("".join(host.name for host in ready.cluster.hosts))
        ending = self._endings.pop(0)
        return ending(self, poller)

    def probe_host(self, host):
        return FACTS[host.name] if host.name in self._back else None

    def start_until_done(self):
        return start_until_done(
            self.cluster, self.run, self.gather_hosts, self.start, self.probe_host, self.given
        )[1]

    def go_on(self, state="running"):
        self.step += 10
        write_json(self.run.status, {"step": self.step, "state": state})


def loses(*names, steps=True):
    def end(world, poller):
        if steps:
            world.go_on()
        return Outcome(1, frozenset(names), RunError(f"{names} gone"))

    return end


def finishes(world, poller):
    world.go_on("finished")
    return Outcome(0)


def pauses_for_a_host_that_is_back(world, poller):
    world.go_on("preempted")
    deadline = threading.Event()
    while not poller.has_found():
        deadline.wait(0.01)
    return Outcome(0)


def test_a_lost_host_is_left_out_and_the_others_are_not_read_again(tmp_path):
    world = World(tmp_path, loses("b"), finishes)
    assert world.start_until_done().code == 0
    assert world.started == ["abc", "ac"]
    assert world.known == [set(), {"a", "c"}]


def test_a_failure_without_a_loss_starts_again_with_all(tmp_path):
    world = World(tmp_path, loses(), finishes)
    assert world.start_until_done().code == 0
    assert world.started == ["abc", "abc"]


def test_a_host_that_is_back_is_taken_in_where_the_list_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(elastic, "POLL_HOSTS_EVERY_S", 0.01)
    world = World(tmp_path, loses("a"), pauses_for_a_host_that_is_back, finishes, back="a")
    assert world.start_until_done().code == 0
    assert world.started == ["abc", "bc", "abc"]
    assert world.known[-1] == {"a", "b", "c"}


def test_too_few_are_left_so_everybody_is_asked_and_who_was_lost_is_read_again(tmp_path):
    world = World(tmp_path, loses("a", "b"), finishes)
    assert world.start_until_done().code == 0
    assert world.started == ["abc", "abc"]
    assert world.known[-1] == {"c"}


def test_a_mistake_of_the_user_is_not_tried_again(tmp_path):
    def refuses(world, poller):
        return Outcome(UserError.exit_code, error=UserError("no such recipe"))

    world = World(tmp_path, refuses)
    assert world.start_until_done().code == UserError.exit_code
    assert world.started == ["abc"]


def test_without_min_hosts_nothing_is_tried_again(tmp_path):
    world = World(tmp_path, loses("b"), min_hosts=None)
    assert world.start_until_done().code == 1
    assert world.started == ["abc"]


def test_who_has_asked_to_stop_is_obeyed(tmp_path):
    def is_interrupted(world, poller):
        world.given.asked = 1
        return Outcome(1, frozenset("b"))

    world = World(tmp_path, is_interrupted)
    world.start_until_done()
    assert world.started == ["abc"]


def test_starts_that_bring_no_step_come_to_an_end(tmp_path):
    fruitless = [loses(steps=False)] * elastic.FRUITLESS_STARTS
    world = World(tmp_path, *fruitless, finishes)
    assert world.start_until_done().code == 1
    assert len(world.started) == elastic.FRUITLESS_STARTS


@pytest.mark.parametrize(
    ("known", "wanted"),
    [(("c", "a"), ["a", "c"]), (("b",), ["a", "b", "c"]), ((), ["a", "b", "c"])],
)
def test_candidates_come_in_the_order_of_the_list(known, wanted):
    chosen = next_candidates(cluster_of(*NAMES), known)
    assert [host.name for host in chosen.hosts] == wanted


def test_who_asks_to_stop_while_hosts_are_checked_is_obeyed(tmp_path):
    world = World(tmp_path)

    def gather_hosts(candidates, known):
        world.given.asked = 1
        raise UserError("a: stopped before it answered")

    ready, outcome = start_until_done(
        world.cluster, world.run, gather_hosts, world.start, world.probe_host, world.given
    )
    assert (ready, outcome.code, world.started) == (None, 0, [])
