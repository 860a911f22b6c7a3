"""Where the recipes that come with Dragoman are: beside the package, or in its checkout."""

from pathlib import Path

from dragoman.errors import UserError


def shipped_recipe(name: str) -> Path:
    package = Path(__file__).parent
    for folder in (package / "shipped_recipes", package.parents[1] / "recipes"):
        if (folder / f"{name}.toml").exists():
            path = folder / f"{name}.toml"
            here = Path.cwd()
            return path.relative_to(here) if path.is_relative_to(here) else path
    raise UserError(f"the recipe {name} did not come with this installation; install it again")
