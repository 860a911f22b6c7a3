import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pexpect
import pytest
from processes import dragoman, sentence, start_dragoman, wait_until

from dragoman.cli.translate import _check_output, _Meter, _search
from dragoman.documents.translation import RECORDS_AT_ONCE
from dragoman.errors import StorageError, UserError

pytestmark = pytest.mark.timeout(180)


def files_in(folder):
    """Without the run, whose folder of converted weights may grow."""
    return sorted(path.name for path in folder.iterdir() if path.name != "run")


def test_text_in_text_out_in_every_way(trained, tmp_path):
    _, run = trained
    text = tmp_path / "in.txt"
    text.write_text("one two\n\nthree\n")
    by_argument = dragoman("translate", run, "one two", "", "three")
    by_input = dragoman("translate", run, typed="one two\n\nthree\n")
    by_file = dragoman("translate", run, "--input", text, "--output", tmp_path / "out.txt")
    assert by_argument.returncode == by_input.returncode == by_file.returncode == 0
    assert by_argument.stdout == by_input.stdout == (tmp_path / "out.txt").read_text()
    assert len(by_input.stdout.split("\n")) == 4
    assert by_input.stdout.split("\n")[1] == ""
    assert by_argument.stderr == by_input.stderr == by_file.stdout == ""
    (closing,) = by_file.stderr.splitlines()
    assert closing.startswith("3 lines, 2 sentences in ")
    assert closing.endswith(" on cpu")

    averaged = dragoman("translate", run, "--average", 2, "one")
    assert "1 checkpoint(s)" in sentence(averaged, 2)
    broken = subprocess.run(
        ["bash", "-c", f"printf 'one\\xff\\n' | {' '.join(by_input.args[:3])} translate {run}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "standard input, line 1: not UTF-8" in sentence(broken, 2)


def test_a_checkpoint_is_named_by_its_folder(trained, tmp_path):
    _, run = trained
    best = run / "checkpoints" / "best"
    expected = dragoman("translate", run, "one two").stdout
    assert dragoman("translate", best, "one two").stdout == expected
    alone = shutil.copytree(best, tmp_path / "mine")
    table = tmp_path / "in.tsv"
    table.write_text("id\ten\n7\tone two\n", encoding="utf-8")
    done = dragoman("translate", alone, "--input", table, "--column", "en")
    assert done.stdout == f"id\ten\tde\n7\tone two\t{expected}"
    own = dragoman("translate", alone, "one", "--output", alone / "model.safetensors")
    assert "model.safetensors" in sentence(own, 2)
    assert f"{tmp_path}: is neither" in sentence(dragoman("translate", tmp_path, "one"), 2)
    twice = dragoman("translate", best, "--checkpoint", 2, "one")
    assert "name the run" in sentence(twice, 2)


def test_files_of_all_kinds_come_out_in_their_kind(trained, tmp_path):
    _, run = trained
    (expected,) = dragoman("translate", run, "one two").stdout.splitlines()

    with gzip.open(tmp_path / "in.txt.gz", "wt", newline="") as file:
        file.write("  one two\r\n\r\n- one two \r\n---\r\n")
    done = dragoman("translate", run, "-i", tmp_path / "in.txt.gz", "-o", tmp_path / "out.gz")
    assert done.returncode == 0, done.stderr
    with gzip.open(tmp_path / "out.gz", "rt", newline="") as file:
        assert file.read() == f"  {expected}\r\n\r\n- {expected} \r\n---\r\n"

    (tmp_path / "in.tsv").write_text("id\ten\n7\tone two\n")
    done = dragoman("translate", run, "-i", tmp_path / "in.tsv", "--column", "en")
    assert done.stdout == f"id\ten\tde\n7\tone two\t{expected}\n"
    done = dragoman("translate", run, "--column", 2, typed="7\tone two\n")
    assert done.stdout == f"7\tone two\t{expected}\n"

    (tmp_path / "in.jsonl").write_text('{"id": 7, "en": "one two\\n\\none two"}\n')
    done = dragoman("translate", run, "-i", tmp_path / "in.jsonl", "--key", "en")
    assert json.loads(done.stdout) == {
        "id": 7,
        "en": "one two\n\none two",
        "translation": f"{expected}\n\n{expected}",
    }


def test_lines_are_split_whole_or_wrapped(trained):
    _, run = trained
    one, two = dragoman("translate", run, "One is two.", "Three is four.").stdout.splitlines()
    text = "One is two.  Three is four.\n"
    assert dragoman("translate", run, typed=text).stdout == f"{one}  {two}\n"
    whole = dragoman("translate", run, "--lines", "whole", typed=text).stdout
    assert whole.count("\n") == 1
    wrapped = dragoman("translate", run, "--lines", "wrapped", "One is\ntwo.", "Three is four.")
    assert wrapped.stdout.split() == f"{one} {two}".split()


def test_strange_text_is_answered_line_by_line(trained):
    _, run = trained
    lines = [
        "",
        "one " * 10_000,
        "\x01\x02\x1b[31m\x7f",
        "😀👩‍👩‍👧‍👦",
        "مرحبا بالعالم. كيف حالك؟",
        "\u2028\u2029\x85\x0b\x0c",
        "a\rb",
        "\u202eone\u202c",
        "x" * 5_000,
        "\ufffd\ufeff",
        "one",
    ]
    done = dragoman("translate", run, "--beam", 1, typed="".join(f"{line}\n" for line in lines))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == len(lines)
    assert done.stdout.split("\n")[0] == ""


def test_bad_files_are_refused_in_a_sentence_and_nothing_is_written(trained, tmp_path):
    _, run = trained
    good = b"one\n" * 5_000
    torn = gzip.compress(os.urandom(20_000).hex().encode())[:5_000]
    bad = {
        "utf8.txt": (good + b"tw\xffo\n", (), "line 5001"),
        "torn.txt.gz": (torn, (), "torn.txt.gz"),
        "rows.tsv": (b"en\tx\none\tx\ntwo\n", ("--column", "en"), "line 3"),
        "other.tsv": (b"en\tx\n", ("--column", "fr"), "'fr'"),
        "values.jsonl": (b'{"en": "one"}\n{"en": 5}\n', ("--key", "en"), "line 2"),
        "no.jsonl": (b"{}\n", (), "--key"),
        "nul.txt": (b"one\0\n", (), "line 1"),
    }
    for name, (content, _, _) in bad.items():
        (tmp_path / name).write_bytes(content)
    before = files_in(tmp_path)
    for name, (_, options, fact) in bad.items():
        done = dragoman(
            *("translate", run, "--beam", 1, "-i", tmp_path / name, *options),
            *("-o", tmp_path / "out.txt"),
        )
        assert fact in sentence(done, 2), name
        assert str(tmp_path / name) in sentence(done, 2)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--column", "1", "--key", "a"), "--key"),
        (("--column", "1", "--n-best", "2"), "--n-best"),
        (("--output-key", "a"), "--output-key"),
        (("--prefix", "a", "--prefixes", "b"), "--prefixes"),
        (("-i", "a", "one"), "both"),
        (("--lines", "wrapped", "--prefixes", "b"), "--prefixes"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(tmp_path, options, fact):
    assert fact in sentence(dragoman("translate", tmp_path, *options), 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_no_file(trained, tmp_path, number):
    _, run = trained
    (tmp_path / "in.txt").write_text("one two three four\n" * 200_000)
    files = ("-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    # In the background of a shell, tests and their processes ignore SIGINT.
    default = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = start_dragoman("translate", run, *files, preexec_fn=default)
    wait_until(lambda: any(name.startswith(".out.txt") for name in files_in(tmp_path)))
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert files_in(tmp_path) == ["in.txt"]


def test_what_was_translated_is_printed_before_the_input_ends(trained):
    _, run = trained
    process = start_dragoman("translate", run, "--beam", 1)
    process.stdin.write("one\n" + "\n" * RECORDS_AT_ONCE)
    process.stdin.flush()
    assert process.stdout.readline().endswith("\n")
    assert process.poll() is None
    process.stdin.write("two\n")
    process.stdin.close()
    # Not communicate(), which would miss what was read ahead together with the first line.
    assert process.stdout.read().count("\n") == RECORDS_AT_ONCE + 1
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == 0


def test_prefixes_have_a_line_for_each_line(trained, tmp_path):
    _, run = trained
    (tmp_path / "p.txt").write_text("\n\n")
    done = dragoman("translate", run, "--prefixes", tmp_path / "p.txt", typed="one\n\ntwo\n")
    assert "prefixes" in sentence(done, 2)


def test_translations_go_through_links_and_pipes(trained, tmp_path):
    _, run = trained
    text, target, link = (tmp_path / name for name in ("in.txt", "target.txt", "link.txt"))
    text.write_text("one two\n")
    target.write_text("old")
    link.symlink_to(target)
    expected = dragoman("translate", run, "one two").stdout
    assert dragoman("translate", run, "-i", text, "-o", link).returncode == 0
    assert (link.is_symlink(), target.read_text()) == (True, expected)

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert dragoman("translate", run, "-i", text, "-o", pipe).returncode == 0
    assert os.read(reader, 10_000).decode() == expected
    os.close(reader)
    assert pipe.is_fifo()


def test_translations_are_never_written_over_what_is_needed(trained, tmp_path):
    _, run = trained
    text, same, loop = (tmp_path / name for name in ("in.txt", "same.txt", "loop"))
    text.write_text("one two\n")
    same.symlink_to(text)
    loop.symlink_to(loop)
    weights = run / "checkpoints" / "best" / "model.safetensors"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    other = tmp_path / "other"
    for output, error in (
        (tmp_path, UserError),
        (text, UserError),
        (same, UserError),
        (run / "config.toml", UserError),
        (weights, UserError),
        (run / "checkpoints" / "new.txt", UserError),
        (loop, StorageError),
    ):
        with pytest.raises(error, match=str(output)):
            _check_output(output, [text], [other, run])
    _check_output(tmp_path / "new.txt", [text], [run])
    refused = dragoman("translate", run, "-i", text, "-o", weights)
    assert str(weights) in sentence(refused, 2)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_without_standard_input_one_sentence_says_so(tmp_path):
    command = f"{sys.executable} -m dragoman translate {tmp_path} <&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "standard input" in sentence(done, 2)


def test_translating_with_what_is_no_run(tmp_path):
    none = tmp_path / "none"
    assert str(none) in sentence(dragoman("translate", none, "one"), 2)
    (tmp_path / "empty").mkdir()
    assert "empty: is neither a run" in sentence(dragoman("translate", tmp_path / "empty", "x"), 2)


def at_a_terminal(*arguments):
    return pexpect.spawn(
        sys.executable,
        ["-m", "dragoman", *map(str, arguments)],
        env=os.environ | {"TERM": "dumb", "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        encoding="utf-8",
        timeout=100,
        dimensions=(24, 200),
    )


def test_at_a_terminal_a_line_at_the_end_says_how_much_was_translated(trained, tmp_path):
    _, run = trained
    (tmp_path / "in.txt").write_text("one two\n\nthree\n")
    child = at_a_terminal("translate", run, "-i", tmp_path / "in.txt")
    child.expect(r"3 lines, 2 sentences in [\d.]+ s \([\d,]+ sentences/s\) with \w+.* on cpu\r\n")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_the_speed_is_shown_on_a_terminal_while_it_takes_long(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = []
    now = iter([100.0, 101.0, 104.0, 104.0, 105.0])
    monkeypatch.setattr("sys.stderr", Terminal())
    clock = SimpleNamespace(monotonic=lambda: next(now))
    # By its name in the package, the module is hidden behind the function.
    monkeypatch.setattr(sys.modules[_Meter.__module__], "time", clock)
    meter = _Meter()
    monkeypatch.setattr(meter.status, "is_due", lambda: True)
    monkeypatch.setattr(meter.status, "show", shown.append)
    meter.done(10)
    assert shown == []
    meter.done(190)
    (line,) = shown
    assert "200 sentences" in line
    assert "50 sentences/s" in line
    monkeypatch.setattr("sys.stderr", io.StringIO())
    quiet = _Meter()
    monkeypatch.setattr(quiet.status, "show", shown.append)
    quiet.done(10_000)
    assert len(shown) == 1


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_a_file_the_time_left_is_shown_also_where_there_is_no_terminal(monkeypatch, is_terminal):
    now, shown = [0.0], []
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: is_terminal))
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(sys.modules[_Meter.__module__], "time", clock)
    meter = _Meter(lines=400)
    monkeypatch.setattr(meter.status, "is_due", lambda: True)
    monkeypatch.setattr(meter.status, "show", shown.append)

    def search(sentences, prefixes):
        for _ in range(2):
            now[0] += 5.0
            meter.done(len(sentences) // 2)
        return sentences

    counted = meter.of_search(search)
    lines = meter.of_lines(["a line"] * 400)
    for batch in range(2):  # of 200 lines with 300 sentences
        for _ in range(200):
            next(lines)
        assert counted(["a sentence"] * 300, [""] * 300) == ["a sentence"] * 300
        assert len(shown) == [2, 3 + is_terminal][batch]
    assert shown[:3] == [
        "translating: 150 of about 600 sentences (30 sentences/s), about 15 s left",
        "translating: 300 of about 600 sentences (30 sentences/s), about 10 s left",
        "translating: 450 of 600 sentences (30 sentences/s), about 5 s left",
    ]


def test_in_a_dialog_the_speed_is_that_of_a_line_and_gone_before_its_translation(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now, shown = [0.0], []
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(
        *(sys.modules[_Meter.__module__], "time"), SimpleNamespace(monotonic=lambda: now[0])
    )
    meter = _Meter()
    monkeypatch.setattr(meter.status, "is_due", lambda: True)
    monkeypatch.setattr(meter.status, "show", shown.append)
    monkeypatch.setattr(meter.status, "clear", lambda: shown.append("cleared"))

    def take(seconds):
        now[0] += seconds
        meter.done(6)
        return seconds

    answer = meter.of_each(take)
    assert answer(1.0) == 1.0
    now[0] += 100.0  # in which the next line is typed
    assert answer(1.0) == 1.0
    assert shown == ["cleared", "cleared"]
    assert answer(3.0) == 3.0
    assert shown[2:] == ["translating: 6 sentences (2 sentences/s)", "cleared"]


def test_at_a_terminal_there_is_a_dialog(trained):
    _, run = trained
    expected = dragoman("translate", run, "one two").stdout.strip()
    child = at_a_terminal("translate", run)
    child.expect("> ")
    child.sendline("one two")
    child.expect_exact(f"{expected}\r\n")
    child.expect("> ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


class Remembering:
    """Stands in for a translator: remembers what it was asked."""

    def translate(self, sentences, **options):
        self.options = options
        return [sentence.upper() for sentence in sentences]

    def translations(self, sentences, **options):
        self.options = options
        candidates = [SimpleNamespace(text=text, score=-1.0, alignment=()) for text in sentences]
        return [SimpleNamespace(candidates=(candidate,)) for candidate in candidates]


def asked(prefixes=("", ""), **wishes):
    """The options with which a translator is asked for two sentences."""
    translator = Remembering()
    defaults = {"n_best": 1, "is_detailed": False, "is_aligned": False, "beam": None}
    defaults |= {"prefix": "", "glossary": None, "done": None}
    found = _search(translator, **(defaults | wishes))(["a", "b"], prefixes)
    assert [candidates[0].text.lower() for candidates in found] == ["a", "b"]
    return {name: value for name, value in translator.options.items() if value is not None}


def test_a_translator_is_asked_only_for_what_is_wanted():
    assert asked() == {}
    assert asked(beam=3) == {"beam": 3}
    assert asked(prefix="x") == {"prefixes": ["x", "x"]}
    assert asked(prefixes=("y", "")) == {"prefixes": ("y", "")}
    assert asked(glossary="g") == {"glossary": "g"}
    detailed = asked(is_detailed=True, n_best=4, is_aligned=True)
    assert detailed == {"candidates": 4, "aligned": True}
