import json

from dragoman.rundir import RunDir
from dragoman.telemetry.record.log_file import MOST_FILES
from dragoman.telemetry.replication import (
    RecordPiece,
    RecordReceiver,
    RecordTail,
    record_sizes,
    write_piece,
)


def bring(tail, home):
    pieces = list(tail.new_pieces())
    for piece in pieces:
        write_piece(home, piece)
    return pieces


def test_records_grow_at_home_as_they_grow_there(tmp_path):
    there, home = RunDir(tmp_path / "there"), RunDir(tmp_path / "home")
    path = there.events_of(1, 3)
    path.parent.mkdir(parents=True)
    tail = RecordTail(there.root, {}, "")
    assert bring(tail, home) == []
    path.write_text('{"a": "ä"}\n{"torn": ')
    there.status.write_text("{}")
    bring(tail, home)
    assert home.events_of(1, 3).read_text() == '{"a": "ä"}\n'
    assert home.status.read_text() == "{}"
    assert bring(tail, home) == []
    with path.open("a") as file:
        file.write("1}\n")
    bring(tail, home)
    assert home.events_of(1, 3).read_text() == path.read_text()


def test_what_home_has_already_is_not_sent_again(tmp_path):
    there, home = RunDir(tmp_path / "there"), RunDir(tmp_path / "home")
    for run in (there, home):
        run.events.mkdir(parents=True)
        run.events_of(1, 0).write_text("one\n")
    there.events_of(2, 0).write_text("two\n")
    pieces = bring(RecordTail(there.root, record_sizes(home), ""), home)
    assert [piece.name for piece in pieces] == ["events/attempt-002-rank-0000.jsonl"]
    assert home.events_of(2, 0).read_text() == "two\n"


def test_translations_come_home_whole_and_once(tmp_path):
    there, home = RunDir(tmp_path / "there"), RunDir(tmp_path / "home")
    for path in (there.translations(100), there.references):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Ein „Wort“.\n")
    assert len(bring(RecordTail(there.root, {}, ""), home)) == 2
    assert home.translations(100).read_text() == "Ein „Wort“.\n"
    tail = RecordTail(there.root, record_sizes(home), "")
    there.translations(200).write_text("Zwei.\n")
    assert [piece.name for piece in bring(tail, home)] == ["translations/step-00000200.txt"]


def test_logs_and_files_of_tensorboard_come_home_as_they_grow(tmp_path):
    there, home = RunDir(tmp_path / "there"), RunDir(tmp_path / "home")
    log = there.logs / "node-1.lan-rank-0001-20261118T093000Z.log"
    of_rank_0 = there.tensorboard / "events.out.tfevents.1789.node-1.42.0"
    of_host = there.tensorboard / "node-2" / "events.out.tfevents.1790.node-2.43.0"
    for path in (log, of_rank_0, of_host):
        path.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes("ä\nto".encode())
    of_rank_0.write_bytes(b"\x18\x00\xff\n\xfe")
    of_host.write_bytes(b"plain so far")
    tail = RecordTail(there.root, {}, "")

    def bring_over_the_wire():
        for piece in tail.new_pieces():
            message = json.loads(json.dumps(piece.to_message()))
            assert RecordPiece.from_message(message) == piece
            write_piece(home, RecordPiece.from_message(message))

    bring_over_the_wire()
    assert (home.logs / log.name).read_text() == "ä\n"
    for path, more in ((log, b"rn\n"), (of_rank_0, b"\x00\x80"), (of_host, b"\xff")):
        with path.open("ab") as file:
            file.write(more)
    bring_over_the_wire()
    for path in (log, of_rank_0, of_host):
        assert (home.root / path.relative_to(there.root)).read_bytes() == path.read_bytes()
    assert list(RecordTail(there.root, record_sizes(home), "").new_pieces()) == []


def test_logs_at_home_stay_bounded_too(tmp_path):
    home = RunDir(tmp_path)
    names = [f"logs/a-rank-0000-20261118T0930{second:02d}Z.log" for second in range(20)]
    for name in names:
        write_piece(home, RecordPiece(name, 0, b"line\n"))
    kept = sorted(f"logs/{path.name}" for path in home.logs.iterdir())
    assert kept == [names[0], *names[1 - MOST_FILES :]]


def test_a_piece_that_comes_twice_changes_nothing(tmp_path):
    home = RunDir(tmp_path)
    for _ in range(2):
        write_piece(home, RecordPiece("events/attempt-001-rank-0000.jsonl", 0, b"one\n"))
    assert home.events_of(1, 0).read_text() == "one\n"


def test_the_directory_at_home_itself_is_left_alone(tmp_path):
    run = RunDir(tmp_path)
    run.events.mkdir()
    run.events_of(1, 0).write_text("one\n")
    (tmp_path / ".home-x").touch()
    assert list(RecordTail(tmp_path, {}, ".home-x").new_pieces()) == []


def test_only_records_can_be_written(tmp_path):
    home = RunDir(tmp_path / "home")
    for name in (
        "../x",
        "config.toml",
        "events/../../x",
        "events/y.jsonl",
        "translations/../x.txt",
        "logs/../x-20261118T093000Z.log",
        "logs/.x-20261118T093000Z.log",
        "logs/x.log",
        "tensorboard/../events.out.tfevents.1.a",
        "tensorboard/a/b/events.out.tfevents.1.a",
        "tensorboard/x",
    ):
        write_piece(home, RecordPiece(name, 0, b"bad"))
        write_piece(home, RecordPiece(name, None, b"bad"))
    assert not list(tmp_path.rglob("*"))


def test_a_disk_at_home_that_refuses_stops_nothing_and_leaves_no_hole(tmp_path, caplog):
    there, home = RunDir(tmp_path / "there"), RunDir(tmp_path / "home")
    for run in (there, home):
        run.events.mkdir(parents=True)
    path, at_home = there.events_of(1, 0), home.events_of(1, 0)
    tail, records = RecordTail(there.root, {}, ""), RecordReceiver(home)

    def bring_line(line):
        with path.open("a") as file:
            file.write(line)
        for piece in tail.new_pieces():
            records.add(piece)

    at_home.symlink_to("/dev/full")
    bring_line("one\n")
    bring_line("two\n")
    (told,) = caplog.messages
    assert f"{at_home}: No space left on device while bringing records home" in told
    at_home.unlink()
    bring_line("three\n")
    assert not at_home.exists()
    bring(RecordTail(there.root, record_sizes(home), ""), home)
    assert at_home.read_text() == "one\ntwo\nthree\n"


def test_nothing_of_another_run_is_brought(tmp_path):
    there = RunDir(tmp_path / "there")
    there.root.mkdir()
    there.status.write_text("{}")
    tail = RecordTail(there.root, {}, "", run_id="ab12")
    assert list(tail.new_pieces()) == []  # not claimed yet
    there.id.write_text("cd34\n")
    assert list(tail.new_pieces()) == []
    there.id.write_text("ab12\n")
    assert [piece.name for piece in tail.new_pieces()] == ["status.json"]
