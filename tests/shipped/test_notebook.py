"""The notebook is executed from top to bottom by nbclient, in a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
# All cells are executed as they are but for these: a person has a minute, a test suite has not.
FEWER_STEPS = {
    'training.steps\\": 120': 'training.steps\\": 12',
    'training.steps\\": 300': 'training.steps\\": 18',
    'evaluation.every_steps\\": 30': 'evaluation.every_steps\\": 6',
}
EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.execute(notebook, timeout=110, kernel_name="python3")
nbformat.validate(notebook)
nbformat.write(notebook, sys.argv[2])
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_kept_in_the_repository(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    kept = [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    assert kept == []


def test_the_first_run_prepares_trains_diagnoses_and_translates(tmp_path):
    (notebook,) = NOTEBOOKS
    text = notebook.read_text(encoding="utf-8")
    for steps, fewer in FEWER_STEPS.items():
        assert text.count(steps) == 1
        text = text.replace(steps, fewer)
    shortened, executed = tmp_path / "shortened.ipynb", tmp_path / "executed.ipynb"
    shortened.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", EXECUTE, shortened, executed],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
    )
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    outputs = {
        "".join(cell["source"]): cell["outputs"] for cell in cells if cell["cell_type"] == "code"
    }
    (table,) = _shown(outputs['diagnosis = dragoman.diagnose("runs/first")\ndiagnosis'])
    assert "| Question | Verdict | Answer |" in "".join(table["text/markdown"])
    for code, shown in outputs.items():
        # Cells print; what goes to standard error is the log, and no warning of Python.
        assert "Warning" not in _printed(shown)
        if ".show()" in code:
            assert any("application/vnd.plotly.v1+json" in data for data in _shown(shown)), code
    *_, last = outputs.values()
    assert len(re.findall(r"^  ->", _printed(last), re.M)) == 2


def _shown(outputs: list[dict]) -> list[dict]:
    return [output["data"] for output in outputs if "data" in output]


def _printed(outputs: list[dict]) -> str:
    return "".join("".join(output.get("text", ())) for output in outputs)
