"""Dragoman from Python: the functions and results that `import dragoman` offers.

They print nothing and install no signal handlers. What is heavy is imported by its function.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.config import Config, Overrides, load_config
from dragoman.errors import RunError, UserError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from dragoman.cluster.launch import Orders
    from dragoman.report.content import Answer, Report
    from dragoman.shards.passport import PreparedData

WAKE_EVERY_S = 0.1
PLOT_HEIGHT_PIXELS = 400
TITLE_PIXELS = 100  # above a plot, for its title and its legend


@dataclass(frozen=True)
class TrainingResult:
    """How a training has ended."""

    state: str
    """finished, or preempted: stopped before its end, with all steps saved."""
    reason: str
    step: int
    run: Path
    """Folder of the run."""


class Diagnosis:
    """The answers about a run: `diagnosis["network"].verdict`; shown as a table in a notebook."""

    def __init__(self, report: "Report") -> None:
        self.report = report
        """All of it, as in report.json."""
        self.answers: list[Answer] = report.answers
        """To the questions that are asked of every run, in order."""
        self.also: list[Answer] = report.also
        """What else needs attention in this run."""

    def __getitem__(self, key: str) -> "Answer":
        for answer in self:
            if answer.key == key:
                return answer
        raise KeyError(f"{key}; there are {', '.join(answer.key for answer in self)}")

    def __iter__(self) -> Iterator["Answer"]:
        return iter([*self.answers, *self.also])

    def __contains__(self, key: object) -> bool:
        return any(key in (answer, answer.key) for answer in self)

    def __len__(self) -> int:
        return len(self.answers) + len(self.also)

    def plots(self, key: str) -> list["Figure"]:
        """Returns the plots of one answer as Plotly figures, which a notebook shows."""
        import plotly.graph_objects

        from dragoman.report.plotly_figures import figure_of
        from dragoman.report.sections.questions import question_section

        figures = []
        for plot in question_section(self[key], self.report).plots:
            figure = plotly.graph_objects.Figure(figure_of(plot))
            # The report has its titles and colors outside its plots; a notebook has no such place.
            title = {"text": escape(plot.title), "y": 0.97, "yanchor": "top"}
            height = figure.layout.height or PLOT_HEIGHT_PIXELS
            margin = {"t": TITLE_PIXELS}
            figure.update_layout(title=title, height=height, margin=margin, template="plotly_white")
            figures.append(figure)
        return figures

    def __repr__(self) -> str:
        width = max((len(answer.key) for answer in self), default=0)
        lines = [f"{answer.key:<{width}}  {answer.verdict}" for answer in self]
        return "\n".join([f"<Diagnosis of {self.report.run}>", *lines])

    def _repr_markdown_(self) -> str:
        from dragoman.report.markdown import escaped

        rows = [
            f"| {escaped(answer.question)} | **{escaped(answer.verdict)}** "
            f"| {escaped(answer.sentence)} |"
            for answer in self
        ]
        return "\n".join(["| Question | Verdict | Answer |", "| --- | --- | --- |", *rows])


def prepare(recipe: str | Path | Config, overrides: Overrides = ()) -> "PreparedData":
    """Makes the prepared data of a recipe, or finds it made already.

    Returns its folder and its passport.
    """
    from dragoman.preparation import prepare

    return prepare(_config_of(recipe, overrides))


def train(
    recipe: str | Path | Config,
    *,
    run: str | Path | None = None,
    workers: int | None = None,
    hosts: str | Path | None = None,
    overrides: Overrides = (),
    oversubscribe: bool = False,
    stop: threading.Event | None = None,
) -> TrainingResult:
    """Trains a model in worker processes; the same call resumes where a run stopped.

    The arguments are those of the command: `run` is the folder of the run, runs/<name of the
    recipe> by default; `workers` is their number on this machine, or on each of `hosts`.

    Ctrl-C lets the workers finish their step and save, and is raised again when they have; a second
    one ends them at once. From other threads, set `stop` for the same, which returns.
    """
    from dragoman.cluster.hosts import load_cluster
    from dragoman.cluster.launch import Orders
    from dragoman.cluster.start import claim_and_prepare, ending_of, train_in_workers
    from dragoman.cluster.worker_log import WorkerLog
    from dragoman.telemetry.record.status import read_status
    from dragoman.training.claim import run_folder, withdraw_claim
    from dragoman.watch.notifier import notifications

    if workers is not None and (type(workers) is not int or workers < 1):
        raise UserError(f"workers = {workers!r} should be a number of at least 1")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise UserError(f"stop = {stop!r} should be a threading.Event")
    config = _config_of(recipe, overrides)
    directory = run_folder(config, None if run is None else Path(run))
    try:
        str(directory.root).encode()
    except UnicodeEncodeError:
        raise UserError(f"run = {str(run)!r} should be a path in UTF-8") from None
    cluster = load_cluster(str(hosts)) if hosts else None
    given, log = Orders(), WorkerLog()
    with notifications(config.notify, directory) as ended:
        is_new = claim_and_prepare(config, directory, workers, cluster, oversubscribe)
        code = _in_thread(
            lambda: train_in_workers(
                config, directory, workers, cluster, oversubscribe, given, log
            ),
            given,
            stop,
        )
        ended(code)
    if code:
        kind = UserError if code == UserError.exit_code else RunError
        said = log.errors[0] if log.errors else read_status(directory).reason
        if is_new and kind is UserError:
            withdraw_claim(directory)
        raise kind(said or f"{directory.root}: a worker failed with exit code {code}")
    ending = ending_of(directory)
    if ending.state == "failed":
        raise RunError(ending.reason)
    if ending.state == "preparing":
        reason = "asked to stop before the first step"
        return TrainingResult("preempted", reason, ending.step, directory.root)
    return TrainingResult(ending.state, ending.reason, ending.step, directory.root)


def diagnose(run: str | Path) -> Diagnosis:
    """Answers the questions of a report about a run, which may be running."""
    from dragoman.report.write import read_report
    from dragoman.rundir import RunDir

    return Diagnosis(read_report(RunDir(Path(run))))


def _config_of(recipe: str | Path | Config, overrides: Overrides) -> Config:
    if not isinstance(recipe, Config):
        return load_config(recipe, overrides)
    if overrides:
        raise UserError("overrides change a recipe; give them to load_config where it is read")
    return recipe


def _in_thread(work: Callable[[], int], given: "Orders", stop: threading.Event | None) -> int:
    """Returns what `work` returns, which a thread of its own does.

    Ctrl-C raises KeyboardInterrupt at whatever place the main thread has reached, and that is here,
    where it becomes an order, and never amid the launching of processes. So does an exception of
    another signal handler, such as a time limit or `sys.exit`: it is raised once `work` has ended.
    """
    outcome: Future[int] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="dragoman-train", daemon=True).start()
    interrupt: BaseException | None = None
    is_stopping = has_ended = False
    while not has_ended:
        try:
            has_ended = bool(wait([outcome], WAKE_EVERY_S).done)
            if stop and not is_stopping and stop.is_set():
                is_stopping = True
                given.ask("asked to stop by the program that trains")
        except BaseException as error:
            interrupt, is_stopping = error, True
            given.ask(f"asked to stop by {_name(error)}")
    if interrupt:
        raise interrupt
    return outcome.result()


def _name(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "Ctrl-C (KeyboardInterrupt)"
    return f"{type(error).__name__} in the program that trains"
