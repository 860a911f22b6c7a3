"""The import table of docs/design.md: a stage imports what is upstream of it, and the base."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "dragoman"

BASE = {
    "",
    "errors",
    "config",
    "installation",
    "jsonfile",
    "rundir",
    "console",
    "cores",
    "recipes",
    "telemetry",
    "version",
}
# Upstream first. A stage may import itself, the base and any stage before it.
FLOW = [
    "storage",
    "corpus",
    "tokenizer",
    "shards",
    "preparation",
    "distributed",
    "batches",
    "model",
    "forecast",
    "sync",
    "checkpoints",
    "decoding",
    "documents",
    "evaluation",
    "training",
    "cluster",
    "lab",
    "diagnosis",
    "report",
    "export",
    "serve",
    "watch",
    "check",
    "plan",
    "comparison",
    "api",
    "cli",
    "__main__",
]
# What a stage does not need, though it stands before it.
FORBIDDEN = {
    "training": {"preparation", "corpus"},
    "report": {"preparation", "corpus", "cluster", "decoding", "evaluation"},
}
# What any later stage may import of a stage that is closed to it as a whole: comparing scores of
# two runs needs the statistics and the files of evaluation, and neither a model nor torch.
OPEN_MODULES = {"dragoman.evaluation.significance", "dragoman.evaluation.scores"}
TORCH_FREE = [
    "dragoman.api",
    "dragoman.cluster.start",
    "dragoman.version",
    "dragoman.cli",
    "dragoman.storage",
    "dragoman.corpus.sources",
    "dragoman.corpus.public",
    "dragoman.tokenizer",
    "dragoman.shards.passport",
    "dragoman.preparation",
    "dragoman.batches.plan",
    "dragoman.checkpoints.names",
    "dragoman.decoding.translator",
    "dragoman.training.schedule",
    "dragoman.model.size",
    "dragoman.documents.form",
    "dragoman.documents.output",
    "dragoman.documents.translation",
    "dragoman.evaluation.comet",
    "dragoman.evaluation.significance",
    "dragoman.evaluation.scores",
    "dragoman.distributed.launchers",
    "dragoman.training.claim",
    "dragoman.training.mirror_claim",
    "dragoman.checkpoints.mirroring",
    "dragoman.distributed.preemption",
    "dragoman.distributed.wire_bytes",
    "dragoman.forecast.sync_modes",
    "dragoman.training.divergence",
    "dragoman.training.observer",
    "dragoman.training.interruption",
    "dragoman.training.manifest",
    "dragoman.cluster.verification",
    "dragoman.check.result",
    "dragoman.check.rehearsal",
    "dragoman.plan.here",
    "dragoman.plan.outlook",
    "dragoman.training.batch_plan",
    "dragoman.batches.shapes",
    "dragoman.check.check",
    "dragoman.check.host",
    "dragoman.diagnosis.run.faults",
    "dragoman.cli.recipe_figures",
    "dragoman.cli.recipe_outlook",
    "dragoman.cluster.launch",
    "dragoman.cluster.agent",
    "dragoman.cluster.supervise",
    "dragoman.cluster.zygote",
    "dragoman.distributed.seal",
    "dragoman.checkpoints.run_id",
    "dragoman.cluster.remote_run",
    "dragoman.cluster.setup",
    "dragoman.cluster.probe",
    "dragoman.lab",
    "dragoman.distributed.pulse",
    "dragoman.telemetry.read.events",
    "dragoman.report.write",
    "dragoman.watch.run_watch",
    "dragoman.watch.terminal",
    "dragoman.comparison.compare",
    "dragoman.watch.notifier",
    "dragoman.watch.notifying",
]


def stage_of(module: str) -> str:
    return module.removeprefix("dragoman").removeprefix(".").split(".")[0]


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "dragoman":
            found |= {
                f"dragoman.{alias.name}" if (PACKAGE / alias.name).exists() else "dragoman"
                for alias in node.names
            }
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] == "dragoman"}


def modules() -> list[tuple[str, Path]]:
    return [
        (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path)
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def test_every_module_has_its_room_in_the_table():
    stages = {stage for stage, _ in modules()} - {"__init__"}
    assert stages - BASE - set(FLOW) == set()


@pytest.mark.parametrize(
    ("stage", "path"), modules(), ids=lambda value: getattr(value, "name", value)
)
def test_imports_run_against_the_data_flow(stage, path):
    if stage == "__init__" and path.parent == PACKAGE:  # for type checkers; see test_api.py
        allowed = {"", "api", "config", "decoding", "errors"}
    elif stage in BASE:
        allowed = BASE
    else:
        upstream = set(FLOW[: FLOW.index(stage) + 1])
        allowed = (BASE | upstream) - FORBIDDEN.get(stage, set())
    open_modules = OPEN_MODULES if stage in FLOW[FLOW.index("diagnosis") :] else set()
    used = {stage_of(name) for name in imports_of(path) - open_modules}
    assert used - allowed == set()


def test_the_facts_of_a_run_import_no_opinion_on_them():
    facts = PACKAGE / "diagnosis" / "run"
    imports = {name for path in facts.glob("*.py") for name in imports_of(path)}
    diagnosis = {name for name in imports if stage_of(name) == "diagnosis"}
    assert {name for name in diagnosis if not name.startswith("dragoman.diagnosis.run")} == set()


@pytest.mark.parametrize("module", TORCH_FREE)
def test_what_needs_no_torch_imports_none(module):
    program = f"import sys; sys.modules['torch'] = None; import {module}"
    subprocess.run([sys.executable, "-c", program], check=True)
