from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

from dragoman.diagnosis.answers import padding


def test_padding_is_told_when_it_is_much(tmp_path):
    def counts(tokens):
        own = {"positions": 1000.0, "source_tokens": tokens / 2, "target_tokens": tokens / 2}
        return lambda *_: {"counts": own}

    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=counts(550.0))
    assert padding.answer(read(run)).verdict == "45 %"
    run = write_steps(run, lambda *_: with_parts(), more=counts(960.0))
    assert padding.answer(read(run)) is None
