import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import figure, traffic_of

from dragoman.diagnosis.answers import duration, network, stragglers, traffic


def test_several_that_always_are_late_are_not_late_in_turn(tmp_path):
    """Now one and now the other comes last, by chance; the other two wait for both, always."""

    def parts(rank, number):
        is_slow = rank in (1, 3)
        slightly = 0.01 * ((number + rank) % 4)
        late_s = (0.7 if is_slow else 0.0) + slightly
        return with_parts(backward=0.6 + late_s, communication=0.8 - late_s)

    facts = read(write_steps(new_run(tmp_path), parts, ranks=4))
    found = stragglers.answer(facts)

    assert found.verdict == "host-1 and host-3"
    assert "in turn" not in found.sentence
    answer = network.answer(facts)
    assert answer.verdict == "straggler"
    assert "host-1 and host-3 are slower than the others;" in answer.sentence
    assert "micro-batches" not in found.advice_text + answer.advice_text
    assert answer.advice == found.advice


def test_one_early_rank_makes_no_stragglers_of_the_others(tmp_path):
    def parts(rank, number):
        late_s = 0.0 if number % 6 == rank else 0.7 + 0.01 * ((5 * number + rank) % 6)
        return with_parts(backward=0.6 + late_s, communication=0.8 - late_s)

    found = stragglers.answer(read(write_steps(new_run(tmp_path), parts, ranks=6)))

    assert found.verdict == "several in turn"


def test_stragglers_that_change_are_all_named(tmp_path):
    def parts(rank, number):
        is_late = number // 10 % 2 == rank
        return with_parts(backward=1.1 if is_late else 0.6, communication=0.05 if is_late else 0.55)

    found = stragglers.answer(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "several in turn"
    assert "host-0" in found.sentence
    assert "host-1" in found.sentence


def test_one_that_is_late_now_and_then_and_then_much_is_still_the_one(tmp_path):
    def parts(rank, number):
        is_late = rank == 1 and number % 4 == 0
        waits = 2.05 if rank == 0 and number % 4 == 0 else 0.05
        return with_parts(backward=2.6 if is_late else 0.6, communication=waits)

    found = stragglers.answer(read(write_steps(new_run(tmp_path), parts)))

    assert found.verdict == "host-1"


def test_the_figures_are_those_of_the_answer_about_the_network(tmp_path):
    def parts(rank, number):
        return with_parts(backward=0.6 + 0.5 * rank, communication=0.55 - 0.5 * rank)

    facts = read(write_steps(new_run(tmp_path), parts))
    found, answer = stragglers.answer(facts), network.answer(facts)

    for name in ("waiting for stragglers", "waiting for stragglers share"):
        assert figure(found, name) == figure(answer, name)
    assert figure(found, "waited in the whole run") == pytest.approx(60 * 0.5)


def test_uneven_work_is_nobodys_fault(tmp_path):
    def parts(rank, number):
        late_s = 0.9 if rank == 2 else 0.0
        return with_parts(backward=0.6 + late_s, communication=0.95 - late_s)

    def counts(rank, number):
        tokens = 2000.0 if rank == 2 else 1000.0
        return {"counts": {"positions": tokens, "source_tokens": tokens, "target_tokens": tokens}}

    found = stragglers.answer(read(write_steps(new_run(tmp_path), parts, ranks=3, more=counts)))

    assert found.verdict == "uneven work"
    assert "host-2" not in found.sentence + found.plain


def test_waiting_within_the_error_of_the_small_message_is_not_told_with_confidence(tmp_path):
    def parts(rank, number):
        own = {"backward": 0.6 + 0.3 * rank, "communication": 0.35 - 0.3 * rank, "agreement": 0.2}
        return with_parts(**own)

    assert stragglers.answer(read(write_steps(new_run(tmp_path), parts))).confidence == "medium"


def late_until_30(tmp_path):
    def parts(rank, number):
        late_s = 2.0 if number <= 30 else 0.0
        return with_parts(backward=0.6 + late_s * rank, communication=0.05 + late_s * (1 - rank))

    return read(write_steps(new_run(tmp_path), parts, more=traffic_of()))


def test_every_answer_says_that_it_is_over_and_when_its_share_was(tmp_path):
    facts = late_until_30(tmp_path)
    found = stragglers.answer(facts)
    shared = "of the time until step 30"

    for answer in (found, network.answer(facts)):
        assert shared in answer.plain
        assert "over since step 31" in answer.plain
        assert "over since step 31" in answer.sentence
        assert [a.text.startswith("It has been over since step 31;") for a in answer.advice] == [
            True
        ]
    assert "until step 30, which is over" in traffic.answer(facts).plain
    assert "over since step 31" in traffic.answer(facts).sentence
    assert "until step 30, and it has been over since step 31" in duration.answer(facts).plain


def test_one_slow_host_after_another_is_told_with_its_steps(tmp_path):
    def parts(rank, number):
        is_late = rank == (0 if number <= 50 else 3)
        return with_parts(backward=2.6 if is_late else 0.6, communication=0.05 if is_late else 2.05)

    facts = read(write_steps(new_run(tmp_path), parts, ranks=4, steps=120, more=traffic_of()))
    found, answer = stragglers.answer(facts), network.answer(facts)

    assert found.verdict == "host-0, then host-3"
    for words in (found.plain, answer.plain, found.sentence, answer.sentence):
        assert "host-0 until step 50 and host-3 since step 51" in words
    assert found.advice == answer.advice
    assert found.advice[0].command.startswith("ssh host-3 ")
    assert found.advice[0].saves_s == pytest.approx(70 * 2.0)
    assert "over since" not in found.plain + answer.plain + found.advice_text


def test_a_slow_host_of_earlier_is_told_as_over_where_the_network_holds_the_run_back_now(tmp_path):
    def parts(rank, number):
        late_s = 1.0 if rank == 1 and number <= 40 else 0.0
        network_s = 0.05 if number <= 40 else 2.0
        waits_s = 1.0 if rank != 1 and number <= 40 else 0.0
        return with_parts(backward=0.6 + late_s, communication=network_s + waits_s)

    facts = read(write_steps(new_run(tmp_path), parts, steps=100, more=traffic_of()))
    found = stragglers.answer(facts)

    assert network.answer(facts).verdict == "network-bound"
    assert found.verdict == "host-1"
    assert "over since step 41" in found.plain
    assert found.advice[0].text.startswith("It has been over since step 41;")
