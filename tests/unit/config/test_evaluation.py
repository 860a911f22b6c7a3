from unit.config.refusal import refused

from dragoman.config import parse_config


def test_threads_of_a_process_that_there_is_not_are_refused(text):
    threads = "evaluation.beside_threads=4"
    assert "beside_threads = 4 means nothing without beside = true" in refused(
        text, overrides=[threads]
    )
    config = parse_config(text, "x", [threads, "evaluation.beside=true"])
    assert (config.evaluation.beside, config.evaluation.beside_threads) == (True, 4)
