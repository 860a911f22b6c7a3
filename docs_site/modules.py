"""The source comes in; the pages of the Python interface and of all modules go out."""

import ast
from pathlib import Path

import dragoman
from docs_site.markdown import code, prose, table

API = """\
# Python interface

What `import dragoman` offers, from its docstrings; [from Python](../python.md) shows how the parts
are used together.
"""
MODULES = """\
# Modules

What comes into each module and what goes out, from the first paragraph of its docstring. The order
in which stages may import each other is in [design](../design.md).

"""


def api_page() -> str:
    """Returns a directive of mkdocstrings for each public name, functions before classes."""
    names = [name for name in dragoman.__all__ if not name.startswith("_")]
    names.sort(key=lambda name: (name[0].isupper(), name))
    return API + "".join(f"\n::: {dragoman._HOMES[name]}.{name}\n" for name in names)


def modules_page(package: Path) -> str:
    """Returns a table of the modules of a package, read without importing them."""
    rows = []
    for path in sorted(package.rglob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if said:
            parts = path.relative_to(package.parent).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            rows.append((code(name), prose(said.partition("\n\n")[0])))
    return MODULES + table(("module", "what it is"), rows)
