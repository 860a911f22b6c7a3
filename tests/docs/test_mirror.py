"""`tests/unit` mirrors `src/dragoman`: what a module does is tested in the file of its name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE, UNIT = ROOT / "src" / "dragoman", ROOT / "tests" / "unit"
UNTESTED = {"__init__.py", "__main__.py"}


def test_every_module_has_its_test_file():
    modules = [path for path in SOURCE.rglob("*.py") if path.name not in UNTESTED]
    mirrors = {_mirror_of(path) for path in modules}
    assert sorted(path for path in mirrors if not (UNIT / path).exists()) == []


def test_every_test_file_has_its_module():
    """A package may have a test file of its own name beside the folder that mirrors it."""
    packages = {_mirror_of(path.parent) for path in SOURCE.rglob("*/__init__.py")}
    modules = {_mirror_of(path) for path in SOURCE.rglob("*.py")} | packages
    files = {str(path.relative_to(UNIT)) for path in UNIT.rglob("test_*.py")}
    assert sorted(files - modules) == []


def _mirror_of(path: Path) -> str:
    """The test file, relative to tests/unit, of a module or a package."""
    relative = path.relative_to(SOURCE)
    return str(relative.with_name(f"test_{relative.stem}.py"))
