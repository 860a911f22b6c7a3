import shutil

import pytest

from dragoman.errors import CorruptFileError
from dragoman.preparation import prepare
from dragoman.preparation.pipeline import clean_share
from dragoman.preparation.plan import make_plan
from dragoman.preparation.slices import Share


@pytest.mark.parametrize(
    ("stage", "suffix"),
    [("clean", "source"), ("clean", "keys"), ("kept", "flags"), ("held_out", "target")],
)
@pytest.mark.parametrize("damage", ["cut", "binary", "one byte", "missing"])
def test_a_damaged_slice_is_refused_and_made_again(recipe, stage, suffix, damage):
    config = recipe()
    prepare(config)
    damaged = getattr(make_plan(config), stage)
    path = damaged.file(0, suffix)
    before = path.read_bytes()
    other = recipe("data.max_length=255")  # makes the shards anew, from the same slices
    match damage:
        case "cut":
            path.write_bytes(before[: len(before) // 2])
        case "binary":
            path.write_bytes(b"\xff\xfe\0" * 100)
        case "one byte":
            path.write_bytes(bytes([before[0] ^ 1]) + before[1:])
        case "missing":
            path.unlink()
    with pytest.raises(CorruptFileError, match=rf"{path}: .*{damaged.folder} "):
        prepare(other)
    shutil.rmtree(damaged.folder)
    prepare(other)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("small_slices")
def test_a_finished_slice_is_not_done_again(recipe):
    config = recipe()
    clean_share(config, Share(0, 2), lambda count: None)
    stage = make_plan(config).clean
    times = {n: stage.file(n, "json").stat().st_mtime_ns for n in stage.numbers()}
    assert sorted(times) == [0, 2, 4, 6]
    prepare(config)
    assert {n: stage.file(n, "json").stat().st_mtime_ns for n in times} == times
