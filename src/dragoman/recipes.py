"""Finds the recipes that are shipped with Dragoman: in the package, or in its checkout."""

from pathlib import Path

from dragoman.errors import UserError

IN_PACKAGE = "shipped_recipes"
SHIPPED = ("demo", "multi30k", "wmt16-en-de")
OF_A_RUN = ("run-id", "manifest.json", "events")
"""What lies beside a `config.toml` that is that of a run."""


def recipes_folder() -> Path:
    package = Path(__file__).parent
    shipped = package / IN_PACKAGE
    return shipped if shipped.is_dir() else package.parents[1] / "recipes"


def find_recipe(recipe: Path | str) -> Path:
    """Returns the file that `recipe` names: itself, or the shipped recipe of that name.

    A folder of that name, which often is that of its data, is no recipe.
    """
    path = Path(recipe)
    shipped = recipes_folder() / f"{path.name}.toml"
    is_name = not path.suffix and path.name == str(recipe)
    try:
        is_free = not path.exists() or path.is_dir()
        return shipped if is_name and is_free and shipped.exists() else path
    except OSError:  # a name that is too long; whoever reads it says so
        return path


def base_folder(recipe: Path) -> Path:
    """Returns the folder at which relative paths of a recipe begin: its own.

    Those of a shipped recipe begin at the current folder: it lies where Dragoman is installed, and
    nobody has data there. So do those of a run, if it has any, being older than this rule.
    """
    folder = recipe.parent.resolve()
    is_shipped = recipe.stem in SHIPPED and folder == recipes_folder().resolve()
    is_run = recipe.name == "config.toml" and any((folder / name).exists() for name in OF_A_RUN)
    return Path.cwd() if is_shipped or is_run else folder


def shipped_recipe(name: str) -> Path:
    path = recipes_folder() / f"{name}.toml"
    if not path.exists():
        raise UserError(f"the recipe {name} is missing from this installation; install it again")
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
