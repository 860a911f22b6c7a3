from unit.config.refusal import refused

from dragoman.config import dump_config, parse_config


def test_a_config_from_before_there_were_optimizers_to_choose_from_is_adamw(text):
    config = parse_config(text, "x.toml")
    assert (config.optimizer.kind, config.optimizer.average_decay) == ("adamw", 0.0)


def test_micro_batches_are_a_number_or_found(text):
    config = parse_config(text, "x.toml", ["training.micro_batch_tokens=auto"])
    assert config.training.micro_batch_tokens == "auto"
    assert config.training.micro_batch_limit > 0
    assert parse_config(dump_config(config), "x.toml") == config
    for value in ("0", "1.5", "true", "automatic", "10000000000", "[1]"):
        message = refused(text, overrides=[f"training.micro_batch_tokens={value}"])
        assert "training.micro_batch_tokens = " in message
        assert 'from 1 to 1,000,000,000, or "auto"' in message


def test_a_run_that_nothing_would_end_is_refused(text):
    assert "nothing would end this run" in refused(text.replace("steps = 20\n", "", 1))


def test_a_worker_that_holds_a_part_of_the_model_cannot_try_batches_alone(text):
    sharded = ["training.micro_batch_tokens=auto", "training.sharding=full"]
    message = refused(text, overrides=sharded)
    assert "training.micro_batch_tokens" in message
    assert "training.sharding" in message
