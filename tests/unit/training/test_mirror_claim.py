import pytest
from object_server import PREFIXES, credentials, refusing_server

from dragoman.config import dump_config, parse_config
from dragoman.errors import RemoteError, UserError
from dragoman.rundir import RunDir
from dragoman.storage import Store, parse_address
from dragoman.training import mirror_claim
from dragoman.training.mirror_claim import join_mirror

ID, OTHER_ID = "ab" * 16, "cd" * 16


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "runs" / "x")


@pytest.fixture
def config(digits, tmp_path):
    def config(*settings, mirror=f"file://{tmp_path}/mirror"):
        text = digits.read_text(encoding="utf-8")
        return parse_config(text, "x", [f"checkpoints.mirror={mirror}", *settings])

    return config


@pytest.fixture
def store(tmp_path, config):
    """A mirror in which there is a run."""
    store = Store(parse_address(f"file://{tmp_path}/mirror/x"))
    store.upload("run-id", f"{ID}\n".encode())
    store.upload("config.toml", dump_config(config()).encode())
    store.upload("events/attempt-001-rank-0000.jsonl", b"{}\n")
    return store


def test_a_run_that_is_only_in_the_mirror_comes_here(store, run, config):
    join_mirror(config(), run)
    assert run.id.read_text().strip() == ID
    assert run.config.is_file()
    assert run.events_of(1, 0).is_file()
    join_mirror(config(), run)  # now it is known


def test_a_start_that_was_cut_off_is_repeated(store, run, config, monkeypatch):
    download = Store.download

    def stop_at_events(self, name, path):
        if name.startswith("events"):
            raise RemoteError("the connection broke", "broken")
        download(self, name, path)

    monkeypatch.setattr(Store, "download", stop_at_events)
    with pytest.raises(RemoteError):
        join_mirror(config(), run)
    run.events.mkdir(exist_ok=True)  # no sign of a run that has begun here
    with pytest.raises(RemoteError):
        join_mirror(config(), run)
    monkeypatch.undo()
    join_mirror(config(), run)
    assert run.id.read_text().strip() == ID
    assert run.events_of(1, 0).is_file()


def test_a_machine_that_comes_back_has_the_records_of_attempts_made_elsewhere(store, run, config):
    join_mirror(config(), run)
    store.upload("events/attempt-002-rank-0000.jsonl", b"{}\n")
    join_mirror(config(), run)
    assert run.events_of(2, 0).is_file()


def test_a_mirror_that_is_empty_changes_nothing(run, config):
    join_mirror(config(), run)
    assert not run.root.exists()


def test_the_mirror_of_another_run_is_refused(store, run, config, monkeypatch):
    run.root.mkdir(parents=True)
    run.id.write_text(OTHER_ID)
    with pytest.raises(UserError, match="another run"):
        join_mirror(config(), run)
    run.id.unlink()
    monkeypatch.setenv(mirror_claim.RUN_ID, OTHER_ID)
    with pytest.raises(UserError, match="another run"):
        join_mirror(config(), run)


def test_a_run_of_other_settings_is_refused_with_the_key(store, run, config):
    with pytest.raises(UserError, match=r"training\.seed = 1"):
        join_mirror(config("training.seed=7"), run)
    assert not run.root.exists()


def test_a_folder_with_something_else_in_it_is_left_alone(store, run, config):
    run.root.mkdir(parents=True)
    (run.root / "letter.txt").write_text("dear")
    join_mirror(config(), run)  # what claims the folder refuses it
    assert [path.name for path in run.root.iterdir()] == ["letter.txt"]


def test_a_mirror_that_cannot_be_read_stops_only_what_is_new_here(run, config, monkeypatch, caplog):
    import os

    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    with refusing_server(403, "AccessDenied") as refusal:
        for name, value in credentials(refusal.port).items():
            monkeypatch.setenv(name, value)
        settings = config(mirror="s3://bucket/runs")
        with pytest.raises(RemoteError, match="grant"):
            join_mirror(settings, run)
        run.events.mkdir(parents=True)
        join_mirror(settings, run)
    assert "goes on from what is here" in caplog.text


def test_missing_credentials_are_refused_in_any_case(run, config, monkeypatch):
    import os

    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    run.events.mkdir(parents=True)
    with pytest.raises(UserError, match="AWS_ACCESS_KEY_ID"):
        join_mirror(config(mirror="s3://bucket/runs"), run)
