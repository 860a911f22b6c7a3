import pytest

from dragoman.cluster.start import claim_and_prepare, ending_of
from dragoman.config import parse_config
from dragoman.errors import RunError, UserError
from dragoman.model import memory
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.record.status import read_status


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "run")


def test_a_run_is_claimed_and_its_data_prepared(digits_config, run):
    claim_and_prepare(digits_config, run, workers=1, cluster=None, oversubscribe=False)
    assert run.config.exists()
    assert (digits_config.prepared_folder / "data.json").exists()
    assert read_status(run).state == "preparing"


def test_too_many_workers_are_refused_before_anything_is_written(digits_config, run):
    with pytest.raises(UserError, match="1000 workers"):
        claim_and_prepare(digits_config, run, workers=1000, cluster=None, oversubscribe=False)
    assert not run.root.exists()


def test_a_tokenizer_without_merges_to_drop_is_refused_before_anything_is_written(
    digits, tmp_path, run
):
    text = digits.read_text(encoding="utf-8")
    prepared = prepare(
        parse_config(text, "x", ["tokenizer.kind=unigram", "tokenizer.vocabulary=40"])
    )
    given = f"tokenizer.model={prepared.folder / prepared.passport.tokenizer_file}"
    config = parse_config(text, "x", [given, "training.subword_dropout=0.1"])
    with pytest.raises(UserError, match=r"training\.subword_dropout = 0\.1"):
        claim_and_prepare(config, run, workers=1, cluster=None, oversubscribe=False)
    assert not run.root.exists()


def test_no_memory_for_any_pair_is_refused_before_anything_is_written(digits, run, monkeypatch):
    text = digits.read_text(encoding="utf-8")
    config = parse_config(text, "x", ["training.micro_batch_tokens=auto"])
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    with pytest.raises(UserError, match=r'training\.micro_batch_tokens = "auto"'):
        claim_and_prepare(config, run, workers=1, cluster=None, oversubscribe=False)
    assert not run.root.exists()
    assert not config.prepared_folder.exists()


@pytest.mark.parametrize("state", ["finished", "preempted", "preparing", "failed"])
def test_an_ending_is_read_from_the_status(run, state):
    run.root.mkdir()
    write_json(run.status, {"state": state, "step": 5})
    assert (ending_of(run).state, ending_of(run).step) == (state, 5)


@pytest.mark.parametrize("state", ["training", ""])
def test_workers_that_end_without_saying_how_are_an_error(run, state):
    run.root.mkdir()
    write_json(run.status, {"state": state})
    with pytest.raises(RunError, match=f"still shows '{state}'"):
        ending_of(run)
