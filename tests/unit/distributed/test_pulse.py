import threading

from dragoman.distributed.pulse import (
    LEAST_PATIENCE_S,
    LONG_PATIENCE_S,
    Beat,
    Pulse,
    View,
    find_silent,
    find_stuck,
    lost_rank,
    record_death,
    reporting_rank,
    silence,
)
from dragoman.distributed.seal import Seal
from dragoman.errors import FailedElsewhereError

SEAL = Seal("secret of a start")


def view(rank, age_s=0.2, in_phase_s=1.0, phase="backward", step=17, **more):
    beat = Beat(rank, f"node{rank + 1}", 5, phase, step, in_phase_s, ("a.py:1 work",), **more)
    return View(beat, age_s)


def test_a_rank_that_is_heard_is_not_silent_and_one_that_has_ended_neither():
    assert find_silent([view(0), view(1, age_s=7.9)], 8.0) is None
    assert find_silent([view(0), view(1, age_s=100, ended="")], 8.0) is None


def test_the_longest_silence_is_named_with_phase_stack_and_where_others_wait():
    views = [view(0, in_phase_s=9.4), view(1, age_s=9.1), view(2, age_s=8.5)]
    culprit = find_silent(views, 8.0)
    assert culprit.beat.rank == 1
    error = lost_rank(culprit, views, silence(culprit))
    assert error.culprit == (1, "node2")
    text = str(error)
    assert text.startswith("rank 1 on node2 has not been heard from for 9 s: it was in backward")
    assert "backward of step 17" in text
    assert "a.py:1 work" in text
    assert "rank 0 on node1 in backward of step 17 for 9 s" in text


def test_a_rank_that_beats_and_does_not_go_on_is_stuck_and_the_one_behind_is_named():
    views = [view(0, in_phase_s=70), view(1, in_phase_s=75, phase="data"), view(2, in_phase_s=70)]
    assert find_stuck(views, 60.0).beat.rank == 1
    views[1] = view(1, in_phase_s=75, phase="optimizer", step=16)
    assert find_stuck(views, 60.0).beat.rank == 1


def test_while_any_rank_has_time_left_nobody_is_stuck():
    saving = view(0, in_phase_s=300, phase="checkpoint")
    assert find_stuck([saving, view(1, in_phase_s=299)], 60.0) is None
    assert find_stuck([view(0, in_phase_s=59), view(1, in_phase_s=500)], 60.0) is None


def test_the_lowest_live_rank_speaks():
    assert reporting_rank([view(0, age_s=9), view(1), view(2)], 8.0) == 1
    assert reporting_rank([view(0, ended="x"), view(1, age_s=9), view(2)], 8.0) == 2


def test_patience_follows_the_steps_and_never_falls_below_a_minute():
    pulse = Pulse(0, 1, "here")
    assert pulse.patience_s == LONG_PATIENCE_S
    pulse._step_times.extend([0.5] * 10)
    assert pulse.patience_s == LEAST_PATIENCE_S
    pulse._step_times.extend([30.0] * 20)
    assert pulse.patience_s == 20 * 30.0


def test_timeouts_of_collectives_follow_the_phase():
    asked = []
    pulse = Pulse(0, 1, "here", set_timeout=asked.append)
    for step in (1, 2):
        for phase in ("data", "forward", "backward", "optimizer", "agreement"):
            pulse.enter(phase, step)
    pulse.enter("evaluation", 2)
    pulse.enter("data", 3)
    long, short = max(asked), min(asked)
    assert long > LONG_PATIENCE_S
    assert LEAST_PATIENCE_S < short < LEAST_PATIENCE_S + 60
    assert asked == [long, short, long, short]


class MemoryStore(dict):
    """What torch's store does, in one process."""

    def set(self, key, value):
        self[key] = value

    def multi_get(self, keys):
        return [self[key].encode() for key in keys]


def test_a_rank_that_has_failed_is_found_by_its_last_words():
    store = MemoryStore()
    pulses = [Pulse(rank, 2, f"node{rank + 1}", store, SEAL) for rank in (0, 1)]
    pulses[1].enter("forward", 3)
    pulses[1].close("no such file", exit_code=2)
    assert SEAL.unseal("pulse/1", store["pulse/1"].encode())["ended"] == "no such file"
    exchange = threading.Thread(target=pulses[0]._exchange, daemon=True)
    exchange.start()
    lost = pulses[0].find_lost_rank()
    assert (type(lost), lost.exit_code) == (FailedElsewhereError, 2)
    pulses[0].close()
    exchange.join()


def test_a_rank_that_says_no_more_is_named_when_a_connection_has_broken():
    store = MemoryStore()
    pulses = [Pulse(rank, 2, f"node{rank + 1}", store, SEAL) for rank in (0, 1)]
    pulses[1].enter("backward", 3)
    pulses[1]._write()
    exchange = threading.Thread(target=pulses[0]._exchange, daemon=True)
    exchange.start()
    lost = pulses[0].find_lost_rank()
    pulses[0].close()
    exchange.join()
    assert lost.exit_code == 1
    assert lost.culprit == (1, "node2")
    assert "backward of step 3" in str(lost)
    assert "test_pulse.py" in str(lost)  # where its main thread stood


def two_pulses(store):
    """Each has been heard by the other once."""
    pulses = [Pulse(rank, 2, f"node{rank + 1}", store, SEAL) for rank in (0, 1)]
    pulses[0]._hear(1, store["pulse/1"].encode())
    return pulses


def test_garbage_and_forged_heartbeats_are_ignored_and_told_of_once(caplog):
    store = MemoryStore()
    pulse, _ = two_pulses(store)
    before = pulse.views()[1].beat
    forged = Seal("guessed").seal("pulse/1", {"rank": 1, "ended": "gone"})
    for answer in (b"", b"{", b"null", b"\x80\x04.", forged.encode()):
        pulse._hear(1, answer)
    assert pulse.views()[1].beat == before
    assert caplog.text.count("was not signed with the secret") == 1


def test_an_old_heartbeat_that_is_put_back_is_not_heard_again():
    store = MemoryStore()
    pulse, other = two_pulses(store)
    old = store["pulse/1"]
    other.enter("forward", 9)
    other._write()
    pulse._hear(1, store["pulse/1"].encode())
    heard_at = pulse._seen[1][1]
    pulse._hear(1, old.encode())
    assert pulse._seen[1][0].step == 9
    assert pulse._seen[1][1] == heard_at


def test_a_death_that_an_agent_has_recorded_is_told_by_the_lowest_rank_alive():
    store = MemoryStore()
    pulses = [Pulse(rank, 3, f"node{rank + 1}", store, SEAL) for rank in range(3)]
    pulses[0].enter("backward", 7)
    pulses[0]._write()
    record_death(store, SEAL, 0, "was ended by SIGKILL")
    for pulse in pulses[1:]:
        for rank in {0, 1, 2} - {pulse._rank}:
            pulse._hear(rank, store[f"pulse/{rank}"].encode())
    lost = pulses[1].find_lost_rank()
    assert (lost.exit_code, lost.culprit) == (1, (0, "node1"))
    assert "was ended by SIGKILL: it was in backward of step 7 then" in str(lost)
    assert isinstance(pulses[2].find_lost_rank(), FailedElsewhereError)
    assert pulses[1]._find_problem().reported_here
    assert not pulses[2]._find_problem().reported_here


def test_a_rank_that_saves_is_not_disturbed_when_the_store_is_gone():
    pulse, _ = two_pulses(MemoryStore())
    pulse._exchanged_at -= 30
    pulse.enter("checkpoint", 4)
    assert pulse._find_problem() is None
    pulse.enter("forward", 5)
    assert "has not reached the store" in str(pulse._find_problem().error)
    pulse._step_times.extend([20.0] * 5)  # the launcher may be gone, and a step is a step
    assert pulse._find_problem() is None
