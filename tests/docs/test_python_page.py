"""The page about Python is a program: its blocks are run in order, with a recipe of digits."""

import os
import re
import subprocess
import sys
from pathlib import Path

from digits_language import write_recipe

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_blocks_of_the_page_run(tmp_path):
    write_recipe(tmp_path).rename(tmp_path / "recipe.toml")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    trained, verdict, translations, stopped, refused = done.stdout.splitlines()
    assert trained == "finished 20 training.steps = 20 are done"
    assert " - " in verdict
    assert translations.startswith("[")
    assert stopped == "preempted"
    assert refused.startswith("runs/nothing-here: no such run")
    assert done.stderr == ""
