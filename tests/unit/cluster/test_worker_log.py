import logging
import subprocess
import sys

from dragoman.cluster.worker_log import WorkerLog

PROGRAM = """
import sys
print("step 1\\nerror: only output", flush=True)
print("warning: slow disk\\nTraceback\\n  line 1", file=sys.stderr)
print("error: rank 1 was lost\\n  the same command goes on\\nerror: and this", file=sys.stderr)
"""


def test_lines_become_records_of_their_level_and_errors_are_kept_whole(caplog):
    caplog.set_level(logging.INFO, "dragoman")
    log = WorkerLog()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, log.following(process):
        process.wait()
    records = [(record.levelname, record.message) for record in caplog.records]
    assert [text for level, text in records if level == "INFO"] == ["step 1", "error: only output"]
    assert [record for record in records if record[0] != "INFO"] == [
        ("WARNING", "slow disk"),
        ("WARNING", "Traceback"),
        ("WARNING", "  line 1"),
        ("ERROR", "rank 1 was lost"),
        ("ERROR", "  the same command goes on"),
        ("ERROR", "and this"),
    ]
    assert log.errors == ["rank 1 was lost\n  the same command goes on", "and this"]
    assert {record.name for record in caplog.records} == {"dragoman.workers"}


def test_a_pipe_is_read_to_its_end_though_the_callers_logging_fails(monkeypatch):
    def fail(record):
        raise RuntimeError

    logger = logging.getLogger("dragoman.workers")
    monkeypatch.setattr(logger, "filters", [fail])
    lines = "for n in range(100_000): print('error: ', n, file=sys.stderr)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys\n{lines}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = WorkerLog()
    with process, log.following(process):
        assert process.wait(timeout=60) == 0
    assert len(log.errors) == 100_000
