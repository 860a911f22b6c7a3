import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace as Made

import pytest
from unit.diagnosis.speed.test_link_watch import Played
from unit.report.fake_run import started, step

from dragoman import __version__
from dragoman.check.result import CheckResult, Collective, Computing, HostFacts, Transfer
from dragoman.check.workload import workload_hash
from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.network import Interface
from dragoman.cluster.preflight import Ready
from dragoman.errors import NotStartedError, RunError
from dragoman.plan import outlook
from dragoman.plan.outlook import RunOutlook, concern_about, forecast_event
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Stamped, from_line, to_line
from dragoman.training.manifest import FORECAST

HOSTS = ("host-0", "host-1", "host-2")
COLLECTIVE = Collective(backend="gloo", ranks=3, elements=10, seconds=(0.1,), latency_s=0.01)


def never():
    return False


def figure(value):
    return Made(value=value, low=0.9 * value, high=1.1 * value)


def plan_of(compute_s=0.9, waits_s=0.1, steps=1000, cost=None, budget=0.0):
    own = Made(
        compute_s=figure(compute_s),
        exposed_s=figure(waits_s),
        slowed_s=figure(0.0),
        step_s=figure(compute_s + waits_s),
        bytes_per_step=1e8,
        hours=figure(2.0),
        cost=None if cost is None else figure(cost),
    )
    return Made(
        own=own,
        steps=steps,
        currency="USD",
        budget=budget,
        waits_longer_than_it_computes=waits_s > compute_s,
        exceeds_budget=bool(budget and cost and cost > budget),
        summary_lines=lambda: ["one", "two", "three"],
    )


def checked(config, hours_ago=0.0, names=HOSTS):
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    facts = [
        HostFacts(
            name=name,
            address=f"10.0.0.{number}",
            interface="eth0",
            link_bytes_per_s=None,
            python="3.11",
            torch="2.13.0",
            dragoman=__version__,
            driver=None,
            cores=2,
            workers=1,
            device="cpu",
            device_memory_bytes=10**9,
            gemm_flops_per_s=None,
            free_disk_bytes=10**9,
            disk_bytes_per_s=None,
            clock_offset_s=0.0,
            price_per_hour=2.0 * number,
        )
        for number, name in enumerate(names)
    ]
    transfers = [
        Transfer(
            sender=one,
            receiver=other,
            one_flow_bytes_per_s=1e8,
            several_flows_bytes_per_s=1.25e8 if other != "host-1" else 1e7,
            round_trip_s=1e-4,
        )
        for one in names
        for other in names
        if one != other
    ]
    computing = Computing(
        host="host-0",
        rank=0,
        step_s=(1.0,),
        forward_s=0.3,
        backward_s=0.6,
        last_backward_s=0.6,
        update_s=0.1,
        micro_batches=1,
        peak_memory_bytes=1,
    )
    return CheckResult(
        dragoman=__version__,
        checked_at=at.isoformat(timespec="seconds"),
        seconds=4.0,
        recipe="digits",
        workload_hash=workload_hash(config, config.tokenizer.vocabulary),
        parameters=1,
        hosts=tuple(facts),
        transfers=tuple(transfers),
        collective=COLLECTIVE,
        computing=(computing,),
    )


def ready_of(names=HOSTS):
    cluster = Cluster(hosts=tuple(Host(name=name) for name in names))
    interfaces = {n: Interface("eth0", f"10.0.0.{i}", 24) for i, n in enumerate(names)}
    facts = dict.fromkeys(names, Made(data="the same"))
    return Ready(cluster, facts, interfaces, dict.fromkeys(names, 1))


class World:
    """An outlook whose measurements and plans are given."""

    def __init__(self, config, folder, monkeypatch):
        folder.mkdir(exist_ok=True)
        self.config, self.run = config, RunDir(folder)
        self.plan, self.measured, self.concerns = plan_of(), 0, []
        self.error = None
        monkeypatch.setattr("dragoman.plan.plan.plan_from_check", lambda *_: self.plan)
        monkeypatch.setattr(outlook, "check_cluster", self.check)
        monkeypatch.setattr(outlook, "rehearse", lambda *_: (COLLECTIVE, checked(config).computing))

    def check(self, *_, **__):
        self.measured += 1
        if self.error:
            raise self.error
        return checked(self.config)

    def outlook(self, answer=True):
        def confirm(concern, is_stopping):
            self.concerns.append(concern)
            return answer

        return RunOutlook(self.config, self.run, None, confirm)

    def start(self, names=HOSTS, answer=True):
        return self.outlook(answer).before_start(ready_of(names), None, never)


@pytest.fixture
def world(digits_config, tmp_path, monkeypatch):
    return World(digits_config, tmp_path / "run", monkeypatch)


def test_what_was_measured_is_kept_and_the_forecast_goes_to_the_workers(world, caplog):
    with caplog.at_level(logging.INFO, "dragoman"):
        variables = world.start()
    assert [r.message for r in caplog.records][-3:] == ["one", "two", "three"]
    event = from_line(variables[FORECAST]).event
    assert (event.ranks, event.hosts) == (3, [*HOSTS])
    assert (event.step_s, event.step_low_s, event.step_high_s) == (1.0, 0.9, 1.1)
    assert (event.hours, event.cost) == (2.0, None)
    assert world.run.check.exists()
    assert world.concerns == []


def test_the_most_that_a_host_could_send_to_and_receive_from_any_other_is_noted(digits_config):
    event = forecast_event(digits_config, plan_of(), checked(digits_config))
    assert event.sent_bytes_per_s == dict.fromkeys(HOSTS, 1.25e8)
    assert event.received_bytes_per_s == {"host-0": 1.25e8, "host-1": 1e8, "host-2": 1.25e8}
    assert event.host_prices == {"host-1": 2.0, "host-2": 4.0}


def test_a_run_that_goes_on_is_not_measured_again(world):
    world.start()
    world.start()
    assert world.measured == 1


@pytest.mark.parametrize("change", ["age", "hosts", "workload", "torn"])
def test_it_is_where_that_tells_nothing_any_more(world, change, digits):
    kept = checked(world.config, hours_ago=25.0 if change == "age" else 1.0)
    if change == "workload":
        kept = kept.model_copy(update={"workload_hash": "another"})
    text = kept.model_dump_json()
    world.run.check.write_text(text[:-20] if change == "torn" else text)
    world.start(HOSTS[:2] if change == "hosts" else HOSTS)
    assert world.measured == 1


def test_somebody_is_asked_where_the_run_would_wait_longer_than_it_computes(world):
    world.plan = plan_of(compute_s=1.0, waits_s=31.0)
    assert FORECAST in world.start()
    assert "31 s" in world.concerns[0]
    with pytest.raises(NotStartedError):
        world.start(answer=False)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (plan_of(waits_s=0.5), []),
        (plan_of(compute_s=0.01, waits_s=0.02, steps=100), []),  # two seconds in all
        (plan_of(compute_s=0.01, waits_s=0.02, steps=None), ["20 ms"]),
        (plan_of(cost=9.0, budget=10.0), []),
        (plan_of(cost=200.0, budget=10.0), ["200.00 USD", "10.00 USD"]),
        (plan_of(waits_s=5.0, cost=200.0, budget=10.0), ["5 s", "200.00 USD"]),
    ],
)
def test_only_what_is_worth_it_is_asked_about(plan, words):
    concern = concern_about(plan)
    assert bool(concern) == bool(words)
    assert all(word in concern for word in words)


def test_a_check_that_fails_costs_the_forecast_and_not_the_run(world, caplog):
    world.error = RunError("node2: hangs")
    with caplog.at_level(logging.WARNING, "dragoman"):
        assert world.start() == {}
    assert "node2: hangs" in caplog.text


def test_a_forecast_that_fails_stops_no_run(world, caplog, monkeypatch):
    monkeypatch.setattr("dragoman.plan.plan.plan_from_check", lambda config, result: 1 / 0)
    with caplog.at_level(logging.WARNING, "dragoman"):
        assert world.start() == {}
    assert "no forecast" in caplog.text


def lines_of(watch_played):
    """Returns the records of three ranks as they would come home, rank by rank."""
    return {rank: "".join(lines) for rank, lines in watch_played.items()}


def test_a_link_that_becomes_slower_is_logged_from_the_records_that_come_home(world, caplog):
    made = world.outlook()
    made.before_start(ready_of(), None, never)
    played = Played()
    with caplog.at_level(logging.INFO, "dragoman"):
        for rank in range(3):
            came(made, rank, started(rank=rank, ranks=3))
        played.take = lambda rank, event: came(made, rank, event)
        played.steps(30)
        played.steps(40, network_s=8.0, capped=True)
    told = [record.message for record in caplog.records if "slower" in record.message]
    assert len(told) == 1
    assert "host-1" in told[0]


def came(made, rank, event):
    text = to_line(Stamped(1.0, 1.0, event))
    made.record_came(f"host-{rank}", f"events/attempt-001-rank-{rank:04d}.jsonl", text)


def test_an_attempt_with_fewer_hosts_is_not_compared_and_rubbish_stops_nothing(world, caplog):
    made = world.outlook()
    made.before_start(ready_of(), None, never)
    came(made, 0, started(rank=0, ranks=2))
    for number in range(1, 100):
        came(made, 0, step(number, 50.0, parts_s={"forward": 50.0}, ready_s=50.0))
    made.record_came("host-0", "events/attempt-001-rank-0000.jsonl", '{"kind":"step",\x00\n\n')
    made.record_came("host-0", "status.json", "{}")
    assert "forecast" not in caplog.text
