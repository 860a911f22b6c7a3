"""Where the recipes that come with Dragoman are: beside the package, or in its checkout."""

from pathlib import Path

from dragoman.errors import UserError

IN_PACKAGE = "shipped_recipes"


def recipes_folder() -> Path:
    package = Path(__file__).parent
    shipped = package / IN_PACKAGE
    return shipped if shipped.is_dir() else package.parents[1] / "recipes"


def shipped_recipe(name: str) -> Path:
    path = recipes_folder() / f"{name}.toml"
    if not path.exists():
        raise UserError(f"the recipe {name} did not come with this installation; install it again")
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
