import sys

import pytest

from dragoman.cli.serve import KEY_VARIABLE, _key, serve
from dragoman.errors import UserError


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "python_multipart", "httptools"])
def test_the_extra_is_named_where_a_package_is_missing(monkeypatch, tmp_path, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r"pip install .*\[serve\]") as caught:
        serve([tmp_path])
    assert package in str(caught.value)


def test_a_folder_that_is_no_run_is_refused_before_anything_listens(tmp_path):
    with pytest.raises(UserError, match="missing"):
        serve([tmp_path / "missing"])


def test_the_key_comes_from_a_file_or_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert _key(None) == ""
    monkeypatch.setenv(KEY_VARIABLE, "from environment\n")
    assert _key(None) == "from environment"
    file = tmp_path / "key"
    file.write_text("from file\n")
    assert _key(file) == "from file"
    for wrong in (b"", b" \n", b"\xff"):
        file.write_bytes(wrong)
        with pytest.raises(UserError, match="key"):
            _key(file)
