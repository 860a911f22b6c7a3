import copy

from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import MANIFEST

from dragoman.diagnosis.answers import padding
from dragoman.rundir import write_json


def test_padding_is_told_when_it_is_much(tmp_path):
    def counts(tokens):
        own = {"positions": 1000.0, "source_tokens": tokens / 2, "target_tokens": tokens / 2}
        return lambda *_: {"counts": own}

    run = write_steps(new_run(tmp_path), lambda *_: with_parts(), more=counts(550.0))
    assert padding.answer(read(run)).verdict == "45 %"
    run = write_steps(run, lambda *_: with_parts(), more=counts(960.0))
    assert padding.answer(read(run)) is None


def test_a_tail_of_long_sentences_is_cut_off(tmp_path):
    run = new_run(tmp_path)
    manifest = copy.deepcopy(MANIFEST)
    train = manifest["data"]["splits"]["train"]
    # Of 1,000 sentences: 900 under 8 pieces, 95 under 32, and 5 that are very long.
    train["source"]["lengths"] = [900, 0, 0, 95, *[0] * 28, 5]
    train["target"]["lengths"] = [995, 0, 0, 0, *[0] * 28, 5]
    write_json(run.directory.manifest, manifest)
    own = {"positions": 1000.0, "source_tokens": 300.0, "target_tokens": 250.0}
    write_steps(run, lambda *_: with_parts(), more=lambda *_: {"counts": own})
    found = padding.answer(read(run))

    assert [advice.command for advice in found.advice] == ["data.max_length = 32"]
