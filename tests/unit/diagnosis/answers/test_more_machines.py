import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure
from unit.report.fake_run import started, step

from dragoman.diagnosis.answers import more_machines


def answer(tmp_path, parts=None, **options):
    parts = parts or with_parts()
    return more_machines.answer(read(write_steps(new_run(tmp_path), lambda *_: parts, **options)))


def test_a_run_that_computes_is_faster_on_one_more(tmp_path):
    found = answer(tmp_path, with_parts(rest=0.004, agreement=0.001))

    assert (found.verdict, found.confidence) == ("yes", "medium")
    # Computing 2/3 of now. Of the network's 50 ms its 11 messages take 11 ms on their way, which
    # becomes twice as long in a ring of three; the ring's bytes become 4/3.
    then_s = 0.985 - 0.92 / 3 + 0.011 + 0.039 / 3
    assert figure(found, "step on 3 hosts") == pytest.approx(then_s)
    assert figure(found, "step on 3 hosts, cost of a token") == pytest.approx(
        3 * then_s / (2 * 0.985)
    )
    assert list(found.advice) == []


def test_a_run_that_waits_for_its_network_is_not_and_one_host_would_do(tmp_path):
    found = answer(tmp_path, with_parts(communication=9.0))

    assert found.verdict == "no"
    assert found.plain.startswith("No: 3 machines would be slower")
    (fewer,) = found.advice
    assert "--hosts host-0" in fewer.command
    assert fewer.saves_s > 0


def test_half_of_the_step_for_the_network_leaves_little(tmp_path):
    found = answer(tmp_path, with_parts(communication=0.5))

    assert found.verdict == "little"


def test_what_the_run_has_tried_is_measured(tmp_path):
    """On two hosts the network takes most; the run goes on alone, as fast as it was."""
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(communication=1.0))
    parts = with_parts(forward=0.6, backward=1.2, communication=0.0)
    seconds = sum(parts.values())
    again = [(n * seconds, step(60 + n, seconds, parts_s=dict(parts))) for n in range(1, 31)]
    run.with_events([(0.0, started(attempt=2, first_step=61)), *again], attempt=2)
    found = more_machines.answer(read(run))

    assert (found.verdict, found.confidence) == ("no", "high")
    assert figure(found, "step on 2 hosts") == pytest.approx(1.935)


def test_work_that_cannot_be_shared_out_further_is_told(tmp_path):
    """Four micro-batches on two ranks: on three, one of them still has two."""
    counts = {"positions": 14000.0, "source_tokens": 7000.0, "target_tokens": 7000.0}
    found = answer(tmp_path, more=lambda *_: {"counts": counts})

    assert found.verdict == "no"
    assert "4 micro-batches are given out whole" in found.sentence
    # Three times the messages of a ring of two, which take all of the network's 50 ms.
    assert figure(found, "step on 4 hosts") == pytest.approx(0.985 - 0.92 / 2 + 2 * 0.05)


@pytest.mark.parametrize(
    ("computing", "verdict"), [(1.0, "not known"), (1000.0, "yes"), (0.001, "no")]
)
def test_of_one_host_the_network_is_not_known_but_what_it_must_carry(tmp_path, computing, verdict):
    """Transformer-base: 243.5 MB of gradients, about 2 s at 1 Gbit/s and 0.2 s at 10 Gbit/s."""
    parts = with_parts(forward=computing / 3, backward=computing * 2 / 3, communication=0.0)
    found = answer(tmp_path, parts, ranks=1)

    assert found.verdict == verdict
    assert figure(found, "bytes a step over the network") == pytest.approx(4 * 60_880_896)
    alone_s = figure(found, "step on 2 hosts without any network")
    assert figure(found, "step on 2 hosts at 1 Gbit/s") == pytest.approx(
        alone_s + 4 * 60_880_896 / 125e6
    )


def test_few_steps_say_nothing(tmp_path):
    assert answer(tmp_path, steps=10) is None


def test_a_network_that_was_not_recorded_says_nothing(tmp_path):
    parts = {name: s for name, s in with_parts().items() if name != "communication"}

    assert answer(tmp_path, parts) is None
