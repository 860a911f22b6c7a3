import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis import questions, unasked
from dragoman.diagnosis.answers import faults, hangs, memory, network, padding, stragglers
from dragoman.diagnosis.questions import QUESTIONS, answers_of
from dragoman.diagnosis.unasked import unasked_of
from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    DeviceFound,
    Incident,
    SensorReading,
)


def usual_run(tmp_path, **more):
    return write_steps(new_run(tmp_path), lambda *_: with_parts(), **more)


def test_the_eleven_are_answered_in_their_order(tmp_path):
    found = answers_of(read(usual_run(tmp_path)))

    assert [(f.key, f.question) for f in found] == list(QUESTIONS.items())
    assert len(found) == 11


def test_a_run_without_any_event_is_answered_too(tmp_path):
    facts = read(new_run(tmp_path))

    assert len(answers_of(facts)) == 11
    assert unasked_of(facts) == []


def test_an_answer_that_fails_costs_no_other(tmp_path, monkeypatch):
    def fails(run):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(questions, "_ANSWERS", {**questions._ANSWERS, "network": fails})
    found = {f.key: f for f in answers_of(read(usual_run(tmp_path)))}

    assert found["network"].verdict == "not known"
    assert "ZeroDivisionError: division by zero" in found["network"].sentence
    assert found["network"].question == QUESTIONS["network"]
    assert found["step-time"].verdict == "985 ms"


def test_a_finding_that_fails_is_told(tmp_path, monkeypatch):
    def fails(run):
        raise KeyError("x")

    monkeypatch.setattr(unasked, "_FINDINGS", {"memory": ("Memory?", fails)})

    assert [f.verdict for f in unasked_of(read(usual_run(tmp_path)))] == ["not known"]


def test_a_run_in_order_has_nothing_to_add(tmp_path):
    ended = AttemptEnded(60, "finished", "done")
    run = usual_run(tmp_path, beside=lambda rank, end: [(end + 1, ended)])

    assert [f.key for f in unasked_of(read(run))] == []


def test_evaluations_and_saves_are_no_hangs(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2, 3)),
            (803.0, evaluated(3, seconds=800.0)),
            (1000.0, CheckpointSaved(3, "step-00000003", 10, 190.0)),
            (1001.0, step(4)),
        ]
    )

    assert hangs.finding(read(run, 1002.0)) is None


def test_a_run_that_stands_still_now_hangs_though_its_sensors_go_on(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2, 3)),
            *((float(s), SensorReading({"cpu/percent": 3.0})) for s in range(4, 2400)),
        ]
    )
    found = hangs.finding(read(run, 2401.0))

    assert found.verdict == "hangs now"
    assert "since step 3" in found.sentence


def test_a_killed_run_did_not_hang(tmp_path):
    assert hangs.finding(read(usual_run(tmp_path))) is None


def test_a_step_that_took_an_hour_is_a_hang(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda rank, number: with_parts(communication=3600.0 if number == 30 else 0.05),
    )

    assert "after step 29 (waiting for the network)" in hangs.finding(read(run)).sentence


def test_a_hang_that_nothing_explains_has_no_cause(tmp_path):
    run = write_steps(
        new_run(tmp_path),
        lambda rank, number: with_parts(forward=3600.0 if number == 30 else 0.3),
    )

    assert hangs.finding(read(run)).sentence == "Nothing went on for 1 h after step 29."


def test_several_that_always_are_late_are_not_late_in_turn(tmp_path):
    """Now one and now the other comes last, by chance; the other two wait for both, always."""

    def parts(rank, number):
        is_slow = rank in (1, 3)
        slightly = 0.01 * ((number + rank) % 4)
        late_s = (0.7 if is_slow else 0.0) + slightly
        return with_parts(backward=0.6 + late_s, communication=0.8 - late_s)

    facts = read(write_steps(new_run(tmp_path), parts, ranks=4))
    found = stragglers.finding(facts)

    assert found.verdict == "host-1 and host-3"
    assert "in turn" not in found.sentence
    answer = network.answer(facts)
    assert answer.verdict == "straggler"
    assert "host-1 and host-3 are slower than the others;" in answer.sentence
    assert "micro-batches" not in found.advice + answer.advice


def test_one_early_rank_makes_no_stragglers_of_the_others(tmp_path):
    def parts(rank, number):
        late_s = 0.0 if number % 6 == rank else 0.7 + 0.01 * ((5 * number + rank) % 6)
        return with_parts(backward=0.6 + late_s, communication=0.8 - late_s)

    found = stragglers.finding(read(write_steps(new_run(tmp_path), parts, ranks=6)))

    assert found.verdict == "several in turn"


def test_stragglers_that_change_are_all_named(tmp_path):
    def parts(rank, number):
        is_late = number // 10 % 2 == rank
        return with_parts(backward=1.1 if is_late else 0.6, communication=0.05 if is_late else 0.55)

    found = stragglers.finding(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "several in turn"
    assert "host-0" in found.sentence
    assert "host-1" in found.sentence


def test_one_that_is_late_now_and_then_and_then_much_is_still_the_one(tmp_path):
    def parts(rank, number):
        is_late = rank == 1 and number % 4 == 0
        waits = 2.05 if rank == 0 and number % 4 == 0 else 0.05
        return with_parts(backward=2.6 if is_late else 0.6, communication=waits)

    found = stragglers.finding(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "host-1"


def test_padding_is_told_when_it_is_much(tmp_path):
    def counts(tokens):
        own = {"positions": 1000.0, "source_tokens": tokens / 2, "target_tokens": tokens / 2}
        return lambda *_: {"counts": own}

    run = usual_run(tmp_path, more=counts(550.0))
    assert padding.finding(read(run)).verdict == "45 %"
    run = write_steps(run, lambda *_: with_parts(), more=counts(960.0))
    assert padding.finding(read(run)) is None


@pytest.mark.parametrize(("peak", "is_told"), [(15.5e9, True), (11e9, False)])
def test_memory_near_its_limit_is_told(tmp_path, peak, is_told):
    run = usual_run(
        tmp_path,
        more=lambda *_: {"memory_peak_bytes": peak},
        beside=lambda *_: [(0.5, DeviceFound("cuda:0", "V100", "fp16", None, 16e9))],
    )

    assert (memory.finding(read(run)) is not None) == is_told


def test_ranks_of_one_host_share_its_memory(tmp_path):
    cpu = DeviceFound("cpu", "EPYC", "fp32", None, 16e9)
    run = usual_run(
        tmp_path, more=lambda *_: {"memory_peak_bytes": 8e9}, beside=lambda *_: [(0.5, cpu)]
    )
    for rank in (0, 1):
        path = run.directory.events_of(1, rank)
        path.write_text(path.read_text().replace("host-1", "host-0"))

    assert "100 %" in memory.finding(read(run)).sentence


def test_steps_that_ran_out_of_memory_are_counted(tmp_path):
    what = "rank 1 ran out of memory; the step is repeated in 2 pieces"
    run = usual_run(tmp_path, beside=lambda *_: [(20.0, Incident(9, "other", what))])

    assert memory.finding(read(run)).verdict == "ran out"


def interrupted_run(tmp_path):
    run = new_run(tmp_path)
    steps = [*range(1, 31), *range(21, 41)]  # goes back by itself to step 20
    events = [(float(at), step(n)) for at, n in enumerate(steps, start=1)]
    saved = [(20.5, CheckpointSaved(20, "a", 1, 0.1)), (45.5, CheckpointSaved(35, "b", 1, 0.1))]
    run.with_events(sorted([(0.0, started(ranks=2)), *events, *saved], key=lambda event: event[0]))
    run.with_events([(0.0, started(rank=1, ranks=2)), *events], rank=1)
    run.with_events(
        [
            (0.0, started(attempt=2, first_step=36)),
            *((float(n - 35), step(n)) for n in range(36, 61)),
            (30.0, AttemptEnded(60, "preempted", "asked to stop (SIGTERM)")),
        ],
        attempt=2,
    )
    return run


def test_what_faults_cost_is_told(tmp_path):
    facts = read(interrupted_run(tmp_path))
    found = faults.finding(facts)

    assert found.verdict == "3 faults"
    kinds = [fault.kind for fault in facts.faults.faults]
    assert kinds == ["rolled back", "broken off", "preempted"]
    lost = next(f.value for f in found.evidence if f.name == "lost steps")
    assert lost == 10 + 5 + 25  # the last attempt has saved nothing


def test_a_run_of_several_attempts_without_faults_says_so(tmp_path):
    run = new_run(tmp_path)
    ended = AttemptEnded(1, "finished", "done")
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, ended)])
    run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, step(2)), (2.0, ended)], attempt=2
    )

    assert faults.finding(read(run)).verdict == "none"
