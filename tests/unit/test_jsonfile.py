import pytest
from pydantic import BaseModel, ConfigDict

from dragoman.errors import CorruptFileError
from dragoman.jsonfile import read_model


class Count(BaseModel):
    model_config = ConfigDict(strict=True)

    count: int


def test_a_file_of_the_schema_is_read(tmp_path):
    path = tmp_path / "count.json"
    path.write_text('{"count": 3}')
    assert read_model(path, Count).count == 3


def test_another_type_is_refused_with_the_file_the_key_and_what_to_do(tmp_path):
    path = tmp_path / "count.json"
    path.write_text('{"count": "3"}')
    with pytest.raises(CorruptFileError) as refused:
        read_model(path, Count, "remove it")
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}: count")
    assert sentence.endswith("; remove it")
