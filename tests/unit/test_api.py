"""The public API, as a program, a thread and a notebook use it."""

import inspect
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from digits_language import write_recipe
from notebook import run_cells
from processes import losses, wait_for_step

import dragoman
from dragoman.rundir import RunDir
from dragoman.telemetry.record.status import read_status
from dragoman.training.claim import claim_run

# Tiny matrices on two threads mostly wait for each other; workers inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
ENDLESS = {"training.steps": 100_000, "evaluation.every_steps": 100_000}
PUBLIC = {
    "Candidate": None,
    "Config": None,
    "Diagnosis": None,
    "DragomanError": None,
    "Glossary": None,
    "RunError": None,
    "TrainingResult": "(state: str, reason: str, step: int, run: pathlib.Path) -> None",
    "Translation": None,
    "Translator": None,
    "UserError": None,
    "__version__": None,
    "diagnose": "(run: str | pathlib.Path) -> dragoman.api.Diagnosis",
    "load_config": (
        "(recipe: pathlib.Path | str, "
        "overrides: collections.abc.Sequence[str] | collections.abc.Mapping[str, typing.Any] = ())"
        " -> dragoman.config.config.Config"
    ),
    "prepare": (
        "(recipe: str | pathlib.Path | dragoman.config.config.Config, "
        "overrides: collections.abc.Sequence[str] | collections.abc.Mapping[str, typing.Any] = ())"
        " -> 'PreparedData'"
    ),
    "train": (
        "(recipe: str | pathlib.Path | dragoman.config.config.Config, *, "
        "run: str | pathlib.Path | None = None, workers: int | None = None, "
        "hosts: str | pathlib.Path | None = None, "
        "overrides: collections.abc.Sequence[str] | collections.abc.Mapping[str, typing.Any] = (), "
        "oversubscribe: bool = False, stop: threading.Event | None = None)"
        " -> dragoman.api.TrainingResult"
    ),
}


def handlers():
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def workers():
    """Processes of trainings that this process has started, and none of other tests."""
    lines = [" ".join(p.cmdline()) for p in psutil.Process().children(recursive=True)]
    return [line for line in lines if "dragoman" in line.split("/")[-1] or " dragoman." in line]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What training returned, called by a thread that is not the main one."""
    folder = tmp_path_factory.mktemp("trained")
    recipe = write_recipe(folder)
    results = []
    thread = threading.Thread(
        target=lambda: results.append(dragoman.train(recipe, run=folder / "run"))
    )
    thread.start()
    thread.join()
    (result,) = results
    return result


def test_the_public_names_are_these():
    assert dragoman.__all__ == sorted(PUBLIC)
    for name, signature in PUBLIC.items():
        value = getattr(dragoman, name)
        if signature:
            # Where Python 3.13 keeps this class.
            shown = str(inspect.signature(value)).replace("pathlib._local.", "pathlib.")
            assert shown == signature, name
    assert set(dragoman.__all__) <= set(dir(dragoman))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        dragoman.nothing  # noqa: B018


def test_the_methods_of_a_translator_are_these():
    public = [name for name in vars(dragoman.Translator) if not name.startswith("_")]
    assert public == ["load", "translate", "translations"]
    assert [*inspect.signature(dragoman.Translator.load).parameters] == [
        *("run", "checkpoint", "average", "device", "engine", "precision")
    ]
    assert [*inspect.signature(dragoman.Translator.translate).parameters] == [
        *("self", "sentences", "beam", "prefixes", "glossary", "done")
    ]
    assert [*inspect.signature(dragoman.Translator.translations).parameters] == [
        *("self", "sentences", "candidates", "aligned", "beam", "prefixes", "glossary", "done")
    ]


def test_importing_is_cheap_and_all_names_come_with_a_star():
    program = (
        "import sys, dragoman\n"
        "assert not {'torch', 'numpy', 'pydantic', 'rich'} & set(sys.modules)\n"
        "from dragoman import *\n"
        "assert Translator is dragoman.decoding.translator.Translator\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_recipe_is_a_file_or_the_name_of_a_shipped_one(digits):
    assert dragoman.load_config("demo").name == "demo"
    assert dragoman.load_config(str(digits)).name == "digits"
    with pytest.raises(dragoman.UserError, match="no such recipe"):
        dragoman.load_config("no-such-recipe")


def test_overrides_are_a_mapping_or_texts_of_the_command_line(digits):
    of_mapping = dragoman.load_config(digits, {"training.steps": 7, "schedule.kind": "cosine"})
    assert of_mapping == dragoman.load_config(digits, ["training.steps=7", "schedule.kind=cosine"])
    assert of_mapping.training.steps == 7
    with pytest.raises(dragoman.UserError, match=r"training\.steps"):
        dragoman.load_config(digits, {"training.steps": "many"})
    with pytest.raises(dragoman.UserError, match=r"unknown key training\.stebs"):
        dragoman.load_config(digits, {"training.stebs": 7})
    with pytest.raises(dragoman.UserError, match="a mapping or a list"):
        dragoman.load_config(digits, "training.steps=7")


def test_a_config_takes_the_place_of_a_recipe(digits):
    config = dragoman.load_config(digits, {"data.prepared": str(digits.parent / "elsewhere")})
    prepared = dragoman.prepare(config)
    assert prepared.folder == digits.parent / "elsewhere"
    assert prepared.passport.splits["train"].pairs_kept == 800
    with pytest.raises(dragoman.UserError, match="give them to load_config"):
        dragoman.prepare(config, {"training.steps": 1})


def test_training_off_the_main_thread_returns_how_it_ended(trained):
    assert (trained.state, trained.step) == ("finished", 20)
    assert trained.reason == read_status(RunDir(trained.run)).reason


def test_training_logs_but_prints_nothing_and_leaves_signals_alone(digits, capfd, caplog):
    caplog.set_level(logging.INFO, "dragoman")
    before, during, ended = handlers(), [], threading.Event()

    def observe():
        while not ended.wait(0.05):
            during.append(handlers() == before)

    observer = threading.Thread(target=observe)
    observer.start()
    try:
        dragoman.train(
            digits,
            run=digits.parent / "run",
            workers=2,
            oversubscribe=True,
            overrides={"training.steps": 4},
        )
    finally:
        ended.set()
        observer.join()
    dragoman.diagnose(digits.parent / "run")
    assert capfd.readouterr() == ("", "")
    assert len(during) > 5
    assert all(during)
    assert handlers() == before
    of_workers = [record for record in caplog.records if record.name == "dragoman.workers"]
    assert any("finished at step 4" in record.message for record in of_workers)
    assert {record.levelno for record in of_workers} == {logging.INFO}


def test_a_worker_that_fails_is_an_exception_with_its_sentence(digits, capfd, caplog):
    run = RunDir(digits.parent / "run")
    claim_run(run, dragoman.load_config(digits))
    run.checkpoints.write_text("in the way")
    with pytest.raises(dragoman.RunError, match=str(run.checkpoints)) as raised:
        dragoman.train(digits, run=run.root)
    assert ("dragoman.workers", logging.ERROR, str(raised.value)) in caplog.record_tuples
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_is_killed_is_an_exception_that_names_it(digits):
    run = digits.parent / "run"

    def kill():
        wait_for_step(run, 3)
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "dragoman-0":
                    process.kill()

    threading.Thread(target=kill).start()
    with pytest.raises(dragoman.RunError, match=r"rank 0 on .* was ended by SIGKILL"):
        dragoman.train(digits, run=run, overrides=ENDLESS)


def test_stop_ends_a_training_with_all_its_steps_saved_and_the_same_call_resumes(digits):
    run, stop = digits.parent / "run", threading.Event()

    def stop_after_some_steps():
        wait_for_step(run, 3)
        stop.set()

    threading.Thread(target=stop_after_some_steps).start()
    stopped = dragoman.train(digits, run=run, overrides=ENDLESS, stop=stop)
    assert stopped.state == "preempted"
    assert stopped.step == max(losses(run)) >= 3
    goal = stopped.step + 2
    resumed = dragoman.train(digits, run=run, overrides=ENDLESS | {"training.steps": goal})
    assert (resumed.state, resumed.step) == ("finished", goal)
    assert workers() == []


def test_what_another_signal_handler_raises_stops_the_training_first(digits):
    run = digits.parent / "run"

    def give_up(number, frame):
        raise TimeoutError

    def send_signal():
        wait_for_step(run, 3)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, give_up)
    try:
        threading.Thread(target=send_signal).start()
        with pytest.raises(TimeoutError):
            dragoman.train(digits, run=run, overrides=ENDLESS)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert read_status(RunDir(run)).state == "preempted"
    assert workers() == []


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"workers": -1}, {"workers": "2"}, {"workers": True}, {"stop": "now"}]
)
def test_wrong_arguments_are_refused_before_anything_is_written(digits, wrong):
    run = digits.parent / "run"
    with pytest.raises(dragoman.UserError, match=next(iter(wrong))):
        dragoman.train(digits, run=run, **wrong)
    assert not run.exists()


def test_a_run_whose_name_no_file_could_hold_is_refused(digits):
    run = digits.parent / "run\udcff"
    with pytest.raises(dragoman.UserError, match="UTF-8"):
        dragoman.train(digits, run=run)
    assert not run.exists()


@pytest.mark.parametrize("wrong", [None, 5, [3], {3: 4}, "training.steps=3", b"x"])
def test_overrides_of_another_type_are_refused(digits, wrong):
    with pytest.raises(dragoman.UserError, match="should be a mapping or a list"):
        dragoman.load_config(digits, wrong)


def test_a_translator_translates_sentence_for_sentence(trained):
    translator = dragoman.Translator.load(trained.run, "latest", device="cpu")
    assert translator.steps == [20]
    assert "step 20 with ctranslate2 in float32 on cpu" in repr(translator)
    sentences = ["one two three", "", "nine"]
    translations = translator.translate(sentences)
    assert len(translations) == 3
    assert translations[1] == ""
    assert translator.translate(sentences[::-1])[::-1] == translations
    done = []
    translator.translate(sentences, beam=1, done=done.append)
    assert sum(done) == 2, "an empty sentence is in no batch"


def test_a_translator_refuses_what_it_cannot_do(trained, tmp_path):
    with pytest.raises(dragoman.UserError, match="no such run"):
        dragoman.Translator.load(tmp_path / "nothing")
    translator = dragoman.Translator.load(trained.run, 20, average=1)
    with pytest.raises(dragoman.UserError, match="a list of sentences"):
        translator.translate("one two")
    for beam in (0, 2.5, "3"):
        with pytest.raises(dragoman.UserError, match=f"beam = {beam!r}"):
            translator.translate(["one"], beam=beam)
    for sentence in (1, None, b"one", "\udc80"):
        with pytest.raises(dragoman.UserError, match=r"sentences\[1\]"):
            translator.translate(["one", sentence])
    for wrong in ({"average": 0}, {"average": "2"}, {"device": "tpu"}):
        with pytest.raises(dragoman.UserError, match=next(iter(wrong))):
            dragoman.Translator.load(trained.run, **wrong)


def test_a_diagnosis_is_read_by_key_and_shown_as_a_table(trained):
    diagnosis = dragoman.diagnose(trained.run)
    assert diagnosis["duration"] is diagnosis.answers[0]
    assert [answer.key for answer in diagnosis][: len(diagnosis.answers)] == [
        answer.key for answer in diagnosis.answers
    ]
    assert "duration" in diagnosis
    assert diagnosis.answers[0] in diagnosis
    assert "weather" not in diagnosis
    assert len(diagnosis) == len(diagnosis.answers) + len(diagnosis.also) >= 11
    assert f"trained           {diagnosis['trained'].verdict}" in repr(diagnosis)
    assert len(diagnosis._repr_markdown_().splitlines()) == len(diagnosis) + 2
    with pytest.raises(KeyError, match="there are duration, trained"):
        diagnosis["weather"]


def test_the_plots_of_an_answer_are_figures_with_titles(trained):
    diagnosis = dragoman.diagnose(trained.run)
    loss, bleu = diagnosis.plots("trained")
    assert loss.layout.title.text == "Validation loss"
    assert "BLEU" in bleu.layout.title.text
    assert loss.data
    assert bleu.data
    assert diagnosis.plots("training-set") == []
    with pytest.raises(KeyError, match="there are duration"):
        diagnosis.plots("no-such-answer")


def test_a_diagnosis_of_no_run_is_refused(tmp_path):
    with pytest.raises(dragoman.UserError, match="is not a run directory"):
        dragoman.diagnose(tmp_path)


def test_a_notebook_trains_diagnoses_and_is_interrupted(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    recipe, run = str(digits), str(digits.parent / "run")
    train, diagnose, interrupted, left = run_cells(
        {
            "code": f"import dragoman, psutil; recipe, run = {recipe!r}, {run!r}\n"
            "dragoman.train(recipe, run=run, overrides={'training.steps': 4}).state"
        },
        {"code": "dragoman.diagnose(run)"},
        {
            "code": f"dragoman.train(recipe, run=run, overrides={ENDLESS!r})",
            "interrupt_at": [run, 8],
        },
        {"code": "len(psutil.Process().children(recursive=True))"},
    )
    assert [cell["printed"] for cell in (train, diagnose, interrupted)] == [""] * 3
    assert train["shown"] == [{"text/plain": "'finished'"}]
    assert diagnose["shown"][0]["text/markdown"].startswith("| Question | Verdict |")
    assert (interrupted["status"], interrupted["error"]) == ("error", "KeyboardInterrupt")
    assert left["shown"] == [{"text/plain": "0"}]
    status = read_status(RunDir(Path(run)))
    assert status.state == "preempted"
    assert RunDir(Path(run)).checkpoints.joinpath(f"step-{status.step:08d}").is_dir()
