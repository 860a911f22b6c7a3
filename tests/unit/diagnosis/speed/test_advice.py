import shlex
from dataclasses import replace

import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.step_split import split

from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import Late
from dragoman.diagnosis.speed.foreign_load import ProcessorLoad
from dragoman.telemetry.events import AttemptEnded

ONE = Late("host-1", 0.9, 0.9)
IN_TURN = Late("host-1", 0.4, 0.4)
COMPUTES_LONG = split(straggling_s=0.5)
COMPUTES_FAR_TOO_LONG = split(straggling_s=1.5)
WAITS_FOR_DATA = split(straggling_s=0.5, late_data_s=0.5)


def facts(tmp_path, ranks=2, **ended):
    def beside(rank, end):
        return [(end + 1, AttemptEnded(60, "finished", "done"))] if ended else []

    return read(write_steps(new_run(tmp_path), lambda *_: with_parts(), ranks=ranks, beside=beside))


def crowded(host, foreign=0.45, stolen=0.0):
    taken = foreign + stolen
    return {host: ProcessorLoad(host, 4, 1.0, 1 - taken, foreign, stolen, taken, 1.0)}


def test_a_late_host_is_looked_at_and_then_left_out(tmp_path):
    look, without = advice.on_lateness(facts(tmp_path), ONE, COMPUTES_FAR_TOO_LONG, {})

    assert shlex.split(look.command)[:2] == ["ssh", "host-1"]
    assert "--hosts" not in shlex.split(look.command)
    hosts = shlex.split(without.command)
    assert hosts[hosts.index("--hosts") + 1] == "host-0"
    assert "2 s instead of 2.5 s" in without.text


def test_a_late_host_is_kept_where_the_others_alone_would_be_slower(tmp_path):
    """Of two hosts, one needs 1 s and the other 1.5 s; one alone would need 2 s."""
    (look,) = advice.on_lateness(facts(tmp_path), ONE, COMPUTES_LONG, {})

    assert look.command.startswith("ssh host-1 ")


def test_each_of_several_late_hosts_is_looked_at(tmp_path):
    both = Late("host-1 and host-2", 0.9, 0.9, are_several=True)
    look = advice.on_lateness(facts(tmp_path, ranks=4), both, COMPUTES_LONG, {})[0]

    assert look.command.startswith("for host in host-1 host-2; do ssh $host ")
    assert "host-1 and host-2" in look.text


def test_advice_saves_what_is_waited_for_that_host_alone(tmp_path):
    """The first is late by 1 s in the first 20 of 60 steps, the second by 0.5 s in the others; the
    third is late by 0.1 s, always, so that much would remain."""

    def parts(rank, number):
        late_s = {0: 1.0 * (number <= 20), 1: 0.5 * (number > 20), 2: 0.1, 3: 0.0}[rank]
        return with_parts(backward=0.6 + late_s, communication=1.05 - late_s)

    run = read(write_steps(new_run(tmp_path), parts, ranks=4))

    for who, saved_s in (("host-0", 20 * 0.9), ("host-1", 40 * 0.4), ("host-2", 0.0)):
        look = advice.on_lateness(run, Late(who, 0.9, 0.9), COMPUTES_LONG, {})[0]
        assert look.saves_s == pytest.approx(saved_s, abs=1e-6)


def test_the_programs_of_others_are_the_first_suspects(tmp_path):
    run = facts(tmp_path)
    (found,) = advice.on_lateness(run, ONE, COMPUTES_LONG, crowded("host-1"))
    (stolen,) = advice.on_lateness(run, ONE, COMPUTES_LONG, crowded("host-1", 0.0, 0.4))

    assert (advice.PROCESSES in found.command, advice.WAITING in stolen.command) == (True, True)
    # What goes on elsewhere does not make this host late.
    assert len(advice.on_lateness(run, ONE, COMPUTES_FAR_TOO_LONG, crowded("host-0"))) == 2


def test_late_data_is_looked_at_where_it_is_the_cause(tmp_path):
    run = facts(tmp_path)
    (of_one,) = advice.on_lateness(run, ONE, WAITS_FOR_DATA, {})
    (of_all,) = advice.on_lateness(run, IN_TURN, WAITS_FOR_DATA, {})

    assert of_one.command == f"ssh host-1 '{advice.WAITING}'"
    assert of_all.command == f"ssh host-0 '{advice.WAITING}'"


def test_nothing_is_advised_where_all_are_late_in_turn(tmp_path):
    assert advice.on_lateness(facts(tmp_path), IN_TURN, COMPUTES_LONG, {}) == []


def test_uneven_work_is_cut_into_smaller_pieces_in_a_new_run(tmp_path):
    (found,) = advice.on_lateness(facts(tmp_path), ONE, COMPUTES_LONG, {}, True)
    words = shlex.split(found.command)

    assert "training.micro_batch_tokens=2048" in words
    assert words[words.index("--run") + 1].endswith("run-2")


def test_pieces_are_not_cut_smaller_than_the_longest_pair(tmp_path):
    assert advice.smaller_micro_batches(facts(tmp_path), 64, "Why.") is None


def test_a_run_on_one_host_is_looked_at_without_ssh(tmp_path):
    assert advice.on_host(facts(tmp_path, ranks=1), "host-0", "vmstat 1 5") == "vmstat 1 5"


def test_a_host_without_a_name_gets_no_command(tmp_path):
    assert advice.on_host(facts(tmp_path), "the host of rank 3", "vmstat 1 5") == ""


@pytest.mark.parametrize(
    ("who", "hosts"),
    [
        ("host-1", ["host-1"]),
        ("rank 1 on host-1", ["host-1"]),
        ("host-0 and host-1", ["host-0", "host-1"]),
        ("rank 1", []),
        ("", []),
    ],
)
def test_hosts_are_found_in_the_words_that_name_them(tmp_path, who, hosts):
    assert advice.hosts_named(facts(tmp_path), who) == hosts


def test_a_run_that_a_limit_has_ended_is_not_continued_but_begun_anew(tmp_path):
    ended = advice.save_less_often(facts(tmp_path, ended=True))

    assert f"--run {tmp_path / 'run-2'} " in ended.command
    assert "checkpoints.lost_minutes=20.0" in ended.command


def test_a_run_that_goes_on_is_continued(tmp_path):
    run = new_run(tmp_path)
    config = run.directory.config
    config.write_text(config.read_text().replace("steps = 4", "steps = 100_000"))
    goes_on = read(write_steps(run, lambda *_: with_parts()))

    assert f"--run {tmp_path / 'run'} " in advice.save_less_often(goes_on).command


def test_there_is_no_command_for_no_hosts_or_for_all_of_them(tmp_path):
    run = facts(tmp_path)

    assert advice.on_hosts(run, [], "Why.") is None
    assert advice.on_hosts(run, ["host-0", "host-1"], "Why.") is None


def test_a_host_list_is_changed_by_its_owner(tmp_path):
    run = facts(tmp_path)
    start = replace(run.record.start, options=["--hosts", "hosts.toml"])
    listed = replace(run, record=replace(run.record, start=start))
    found = advice.on_hosts(listed, ["host-0"], "Why.")

    assert "--hosts hosts.toml" in found.command
    assert "only host-0 in hosts.toml" in found.text


def test_fewer_hosts_are_named_where_the_run_was_started(tmp_path):
    run = facts(tmp_path)
    (tmp_path / run.config.prepared_folder).mkdir(parents=True)
    start = replace(run.record.start, options=["--hosts", "host-0,host-1"], folder=str(tmp_path))
    elsewhere = replace(run, record=replace(run.record, start=start))
    command = advice.on_hosts(elsewhere, ["host-0"], "Why.").command

    assert command.startswith(f"cd {tmp_path} && dragoman train {tmp_path}")
    assert command.endswith("--hosts host-0")
