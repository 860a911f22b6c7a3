import fcntl
import os
import re

import pytest

from dragoman.config import load_config, parse_config
from dragoman.errors import CorruptFileError, UserError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, has_id, write_json
from dragoman.training.claim import (
    RUN_ID,
    check_data,
    claim_run,
    found_before,
    incompatible_changes,
    locked,
    move_away_if_other,
    run_id,
    shared_settings,
    withdraw_claim,
    write_found,
)

ONE, OTHER = "ab12" * 8, "cd34" * 8


def changed(digits, *overrides):
    return parse_config(digits.read_text(encoding="utf-8"), "x", overrides)


def test_a_run_belongs_to_its_config(digits, digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    claim_run(run, digits_config)
    run.events.mkdir()
    with pytest.raises(UserError, match=r"training\.seed = 1, and now it is 2"):
        claim_run(run, changed(digits, "training.seed=2"))
    assert load_config(run.config) == digits_config


def test_a_run_that_never_began_belongs_to_whoever_starts_it(digits, digits_config, tmp_path):
    run, other = RunDir(tmp_path / "run"), changed(digits, "training.seed=2")
    claim_run(run, digits_config)
    claim_run(run, other)
    assert load_config(run.config) == other


def test_a_claim_is_withdrawn_unless_the_run_has_begun(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    run.logs.mkdir()
    (run.logs / "launcher-20261118T093000Z.log").touch()
    withdraw_claim(run)
    assert not run.root.exists()
    claim_run(run, digits_config)
    run.checkpoints.mkdir()
    withdraw_claim(run)
    assert load_config(run.config) == digits_config


def test_when_to_stop_look_and_save_may_change(digits, digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    longer = changed(
        *(digits, "training.steps=99", "evaluation.beam=3", "checkpoints.keep_last=9"),
        *("training.sharding=full", "training.compare_every_steps=7"),
        *("evaluation.beside=true", "evaluation.beside_threads=2"),
        *("notify.webhook_variable=HOOK", 'notify.on=["end"]'),
    )
    claim_run(run, longer)
    assert load_config(run.config) == longer


def test_a_run_may_find_its_tokenizer_in_another_place(digits):
    """What is in it is known by the hash of the data, which `check_data` compares."""
    before, after = changed(digits, "tokenizer.model=a"), changed(digits, "tokenizer.model=b/a")
    assert not incompatible_changes(before, after)
    assert shared_settings(before) == shared_settings(after)


def test_the_end_of_a_cosine_is_part_of_the_run(digits):
    before = changed(digits, "schedule.kind=cosine")
    after = changed(digits, "schedule.kind=cosine", "training.steps=99")
    assert [change[0] for change in incompatible_changes(before, after)] == ["training.steps"]


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_tail_extends_a_run_whose_schedule_ends(digits, kind):
    before = changed(digits, f"schedule.kind={kind}")
    longer = [f"schedule.kind={kind}", "training.steps=99"]
    after = changed(digits, *longer, "schedule.tails=[[20, 1e-4]]")
    assert incompatible_changes(before, after) == []
    # Elsewhere than at the planned end, it would be another curve.
    other = changed(digits, *longer, "schedule.tails=[[21, 1e-4]]")
    keys = [key for key, _, _ in incompatible_changes(before, other)]
    assert keys == ["schedule.tails", "training.steps"]
    again = changed(
        digits, *longer[:1], "schedule.tails=[[20, 1e-4], [99, 5e-5]]", "training.steps=150"
    )
    assert incompatible_changes(after, again) == []
    assert incompatible_changes(before, again) == []
    assert incompatible_changes(after, before) != []
    another = changed(digits, *longer, "schedule.tails=[[20, 1e-5]]")
    assert [key for key, _, _ in incompatible_changes(after, another)] == ["schedule.tails"]
    assert incompatible_changes(after, changed(digits, *longer[:1], "training.steps=150")) != []


@pytest.mark.parametrize("accumulate", [(), ("sync.mode=accumulate", "sync.accumulate=4")])
@pytest.mark.parametrize("tails", [(), ("schedule.tails=[[12, 0.0002]]",)])
def test_why_more_steps_are_refused_is_said_with_what_works(digits, tmp_path, tails, accumulate):
    run = RunDir(tmp_path / "run")
    settings = ["schedule.kind=linear", "schedule.warmup_steps=4", *tails, *accumulate]
    claim_run(run, changed(digits, *settings))
    run.events.mkdir()
    with pytest.raises(UserError) as refused:
        claim_run(run, changed(digits, *settings, "training.steps=40"))
    said = str(refused.value)
    for fact in ("linear", "training.steps = 20", "constant", "schedule-free"):
        assert fact in said
    (offered,) = re.findall(r"--set '(schedule\.tails=[^']*)'", said)
    claim_run(run, changed(digits, *settings, "training.steps=40", offered))


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [("adamw", "kind", "muon"), ("adamw", "average_decay", 0.9), ("muon", "muon_rate_factor", 2.0)],
)
def test_the_optimizer_is_part_of_the_run(digits, kind, key, value):
    before = changed(digits, f"optimizer.kind={kind}")
    after = changed(digits, f"optimizer.kind={kind}", f"optimizer.{key}={value}")
    assert [each[0] for each in incompatible_changes(before, after)] == [f"optimizer.{key}"]


@pytest.mark.parametrize(
    ("mode", "key"), [("local", "sync.local_steps"), ("accumulate", "sync.accumulate")]
)
def test_what_other_keys_follow_from_is_named_first(digits, mode, key):
    """A delay, or a rate and a number of steps, that nobody has set."""
    before, after = (changed(digits, f"sync.mode={mode}", f"{key}={value}") for value in (4, 8))
    (first, *_), *others = incompatible_changes(before, after)
    assert first == key
    assert others


def test_a_first_look_that_ended_within_the_warm_up_gets_no_advice_that_would_be_refused(
    digits, tmp_path
):
    run = RunDir(tmp_path / "run")
    claim_run(run, changed(digits, "schedule.kind=linear", "training.steps=10"))
    run.events.mkdir()
    with pytest.raises(UserError, match=r"warm-up of 20 steps.*--run") as refused:
        claim_run(run, changed(digits, "schedule.kind=linear", "training.steps=4500"))
    assert "tails=" not in str(refused.value)


def test_the_end_of_a_schedule_free_run_may_change(digits):
    settings = ("optimizer.kind=schedule-free", "schedule.kind=constant")
    before, after = changed(digits, *settings), changed(digits, *settings, "training.steps=99")
    assert incompatible_changes(before, after) == []


def test_a_folder_with_other_things_in_it_is_not_touched(digits_config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="not a run directory and not empty"):
        claim_run(RunDir(tmp_path / "run"), digits_config)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_other_data_is_refused_with_both_hashes(digits_config, tmp_path):
    passport = prepare(digits_config).passport
    run = RunDir(tmp_path / "run")
    check_data(run, passport)
    write_json(run.manifest, {"data_sha256": passport.content_hash})
    check_data(run, passport)
    write_json(run.manifest, {"data_sha256": 4 * "abcdef0123456789"})
    with pytest.raises(UserError, match=f"abcdef012345.*{passport.content_hash[:12]}"):
        check_data(run, passport)


def test_two_processes_cannot_train_one_run(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    with locked(run), pytest.raises(UserError, match="another process"), locked(run):
        pass
    with locked(run):
        pass


def test_a_run_that_is_being_trained_is_left_as_it_is(digits, digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    with locked(run), pytest.raises(UserError, match="another process"):
        claim_run(run, changed(digits, "training.steps=99"))
    assert load_config(run.config) == digits_config


def test_hosts_that_share_a_folder_claim_it_together(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    with locked(run, fcntl.LOCK_SH):
        claim_run(run, digits_config)


def test_a_claim_that_was_cut_off_is_made_again(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    for left in (".lock", ".config.toml-x1y2z3"):
        (run.root / left).touch()
    claim_run(run, digits_config)
    assert load_config(run.config) == digits_config


def test_what_decides_on_the_best_is_part_of_the_run(digits):
    """A loss below nothing is never better than a BLEU above it: patience would end the run."""
    before, after = changed(digits), changed(digits, "evaluation.best_by=loss")
    assert [change[0] for change in incompatible_changes(before, after)] == ["evaluation.best_by"]


def test_a_run_of_another_recipe_can_be_set_aside(digits, digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    assert move_away_if_other(run, digits_config) is None
    claim_run(run, digits_config)
    assert move_away_if_other(run, digits_config) is None
    assert move_away_if_other(run, changed(digits, "training.seed=2")) == tmp_path / "run.1"
    assert (tmp_path / "run.1" / "config.toml").exists()
    assert not run.root.exists()


def test_a_run_gets_an_id_once_and_keeps_it(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    given = claim_run(run, digits_config)
    assert claim_run(run, digits_config) == run_id(run) == given
    assert claim_run(RunDir(tmp_path / "a" / "run"), digits_config) != given


def test_a_run_from_before_there_were_ids_gets_one(digits_config, tmp_path, monkeypatch):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    run.id.unlink()
    assert claim_run(run, digits_config) == run_id(run)
    run.id.unlink()
    monkeypatch.setenv(RUN_ID, ONE)
    assert claim_run(run, digits_config) == ONE


def test_an_id_that_was_lost_comes_back_from_the_checkpoints(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    given = claim_run(run, digits_config)
    run.id.unlink()
    saved = {5: {"id": given}, 10: {"id": given}, 15: {}}  # one from before there were ids
    for step, owner in saved.items():
        manifest = run.checkpoints / f"step-{step:08d}" / "manifest.json"
        write_json(manifest, {"step": step, "owner": owner, "files": {}})
    (run.checkpoints / "step-00000020").mkdir()
    with pytest.raises(UserError, match="belongs to another run"):
        claim_run(run, digits_config, OTHER)
    assert claim_run(run, digits_config) == run_id(run) == given

    run.id.unlink()
    manifest = run.checkpoints / "step-00000015" / "manifest.json"
    write_json(manifest, {"step": 15, "owner": {"id": OTHER}, "files": {}})
    assert claim_run(run, digits_config) not in (given, OTHER), "it cannot be told whose it is"


def test_a_folder_of_another_run_with_the_same_name_is_refused(digits, tmp_path, monkeypatch):
    """As when expA/model and expB/model are trained on the same hosts."""
    run = RunDir(tmp_path / "model")
    monkeypatch.setenv(RUN_ID, ONE)
    assert claim_run(run, changed(digits)) == ONE
    assert claim_run(run, changed(digits), OTHER) == ONE, "the launcher knows best"
    monkeypatch.setenv(RUN_ID, OTHER)
    told = r"model on this host belongs to another run \(id ab12ab12\.\.\., not cd34cd34"
    with pytest.raises(UserError, match=told):
        claim_run(run, changed(digits, "training.steps=99"))
    assert (load_config(run.config), run_id(run)) == (changed(digits), ONE)


def test_hosts_without_a_launcher_of_ours_agree_on_an_id(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    assert claim_run(run, digits_config, ONE) == ONE
    with pytest.raises(UserError, match="belongs to another run"):
        claim_run(run, digits_config, OTHER)


def test_a_torn_id_is_named(digits_config, tmp_path):
    run = RunDir(tmp_path / "run")
    claim_run(run, digits_config)
    run.id.write_text("")
    with pytest.raises(CorruptFileError, match=r"run-id: should hold the run's id"):
        claim_run(run, digits_config)


def test_a_lock_that_is_no_file_of_ours_is_named_and_left_as_it_is(tmp_path):
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    thesis, lock = tmp_path / "thesis.txt", run.root / ".lock"
    thesis.write_text("x")
    for make in (lambda: lock.symlink_to(thesis), lambda: os.mkfifo(lock), lock.mkdir):
        make()
        with pytest.raises(UserError, match=r"\.lock: should be a regular file"), locked(run):
            pass
        lock.rmdir() if lock.is_dir() else lock.unlink()
    assert thesis.read_text() == "x"


@pytest.mark.timeout(60)
def test_an_id_without_an_end_is_not_read(tmp_path):
    run = RunDir(tmp_path)
    os.mkfifo(run.id)
    with pytest.raises(CorruptFileError, match=r"run-id: cannot be read .*not a regular file"):
        run_id(run)
    assert not has_id(run, ONE)
    run.id.unlink()
    run.id.symlink_to("/dev/zero")
    with pytest.raises(CorruptFileError, match=r"run-id: cannot be read .*not a regular file"):
        run_id(run)
    assert not has_id(run, ONE)


def test_of_two_who_make_the_same_new_run_one_is_refused(digits_config, tmp_path):
    """Or each would have given it another id."""
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    with locked(run, fcntl.LOCK_SH), pytest.raises(UserError, match="another process"):
        claim_run(run, digits_config)


def test_a_run_keeps_the_micro_batches_that_it_has_found(digits, tmp_path):
    run, text = RunDir(tmp_path / "run"), digits.read_text(encoding="utf-8")
    auto, found, other = (
        parse_config(text, "x", [f"training.micro_batch_tokens={value}"])
        for value in ("auto", 320, 321)
    )
    claim_run(run, auto)
    assert load_config(run.config) == auto
    assert found_before(run) is None
    claim_run(run, found)
    claim_run(run, auto)  # the same command again
    assert load_config(run.config) == found
    assert found_before(run) == 320
    run.events.mkdir()
    with pytest.raises(UserError, match=r"training\.micro_batch_tokens = 320"):
        claim_run(run, other)


def test_what_other_hosts_have_found_comes_home_with_the_manifest(digits, tmp_path):
    run = RunDir(tmp_path / "run")
    text = digits.read_text(encoding="utf-8")
    claim_run(run, parse_config(text, "x", ["training.micro_batch_tokens=auto"]))
    write_found(run)
    assert found_before(run) is None
    write_json(run.manifest, {"micro_batch_tokens": 320})
    write_found(run)
    assert load_config(run.config).training.micro_batch_tokens == 320
