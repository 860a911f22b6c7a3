"""JSON files with a schema: a path and a pydantic model come in, checked values go out."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dragoman.config import problems_of
from dragoman.errors import CorruptFileError
from dragoman.rundir import read_json

Model = TypeVar("Model", bound=BaseModel)


def read_model(path: Path, model: type[Model], remedy: str = "") -> Model:
    """Returns the content of the file; CorruptFileError says in one sentence what is wrong with it
    and, with `remedy`, what to do."""
    try:
        return model.model_validate(read_json(path))
    except ValidationError as error:
        what_to_do = f"; {remedy}" if remedy else ""
        raise CorruptFileError(f"{path}: {problems_of(error)}{what_to_do}") from error
