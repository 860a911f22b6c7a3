from dragoman.training.agreement import first_difference
from dragoman.training.claim import shared_settings


def facts(*torches, **more):
    return [{"host": f"n{rank}", "torch": torch_} | more for rank, torch_ in enumerate(torches)]


def test_equal_facts_on_other_hosts_are_no_difference():
    assert first_difference(facts("2.13", "2.13", "2.13")) is None


def test_the_one_that_differs_from_most_is_named_with_both_values():
    difference = first_difference(facts("2.12", "2.13", "2.13"))
    assert difference == (
        "torch",
        "rank 0 on n0 differs from the rest in its torch: '2.12' instead of '2.13'",
    )


def test_of_two_the_second_is_measured_by_the_first():
    assert first_difference(facts("2.13", "2.12")).sentence.startswith("rank 1 on n1 differs")


def test_several_are_counted():
    assert "rank 1 on n1 (and 1 more) differs" in first_difference(facts("a", "b", "c")).sentence


def test_a_key_that_only_one_rank_knows_is_a_difference():
    told = facts("a", "a")
    told[1]["training.new"] = 3
    assert first_difference(told).sentence.endswith("its training.new: 3 instead of None")


def test_hashes_are_shortened():
    assert "its torch: bbbbbbbbbbbb instead of aaaaaaaaaaaa" in (
        first_difference(facts("a" * 64, "b" * 64)).sentence
    )


def test_what_a_host_calls_its_folders_is_its_own_affair(digits_config):
    elsewhere = digits_config.model_copy(
        update={"data": digits_config.data.model_copy(update={"prepared": "/elsewhere"})}
    )
    assert shared_settings(elsewhere) == shared_settings(digits_config)


def test_when_ranks_meet_is_shared_though_it_may_change_between_attempts(digits_config):
    keys = shared_settings(digits_config)
    assert {"training.steps", "evaluation.every_steps", "checkpoints.every_steps"} <= keys.keys()
