import mmap
import re

import numpy as np
import pytest

from dragoman.errors import CorruptFileError
from dragoman.shards.files import PairIds, Shards, verify_files, write_shard

PAIRS = [PairIds([5, 6, 3], [7, 3]), PairIds([8, 3], [9, 10, 11, 3]), PairIds([12, 3], [13, 3])]


def write(folder, pairs, pairs_per_shard=100, dtype=np.uint16):
    """Shards of a split in a folder of their own, as preparation leaves them."""
    files = []
    for begin in range(0, len(pairs), pairs_per_shard):
        sequences = [list(side) for p in pairs[begin : begin + pairs_per_shard] for side in p]
        bounds = np.cumsum([0, *map(len, sequences)])
        tokens = np.array([token for sequence in sequences for token in sequence], dtype=dtype)
        files += write_shard(folder / "shards", f"train-{begin:05d}", tokens, bounds)
    return files


@pytest.mark.parametrize("pairs_per_shard", [1, 2, 100])
def test_pairs_come_back_by_number_whatever_the_shards(tmp_path, pairs_per_shard):
    files = write(tmp_path, PAIRS, pairs_per_shard)
    shards = Shards(tmp_path, files)
    assert len(shards) == 3
    read = [(shards[n].source.tolist(), shards[n].target.tolist()) for n in range(3)]
    assert read == [(list(p.source), list(p.target)) for p in PAIRS]
    assert shards.lengths().tolist() == [[3, 2], [2, 4], [2, 2]]
    verify_files(tmp_path, files)


def test_nothing_is_copied_when_a_pair_is_taken(tmp_path):
    shards = Shards(tmp_path, write(tmp_path, PAIRS))
    base = shards[1].source
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert isinstance(base, mmap.mmap)


def test_large_vocabularies_get_wider_ids(tmp_path):
    shards = Shards(tmp_path, write(tmp_path, [PairIds([70_000], [3])], dtype=np.uint32))
    assert shards[0].source.tolist() == [70_000]


def test_a_flipped_bit_is_found(tmp_path):
    files = write(tmp_path, PAIRS)
    path = tmp_path / files[0].name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"train-00000.tokens.npy: sha256 .* expected"):
        verify_files(tmp_path, files)


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_a_truncated_or_missing_shard_is_not_opened(tmp_path, damage):
    files = write(tmp_path, PAIRS)
    path = tmp_path / files[1].name
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CorruptFileError, match=r"train-00000.bounds.npy.*prepare the data again"):
        Shards(tmp_path, files)


@pytest.mark.parametrize(
    ("tokens", "bounds", "sentence"),
    [
        ([5, 60], [0, 1, 2], "tokens.npy: holds ids that are not 0 to 59"),
        ([5, -1], [0, 1, 2], "tokens.npy: holds ids that are not 0 to 59"),
        ([5, 6], [0, 1, 3], "bounds.npy: its bounds are not those of its ids"),
        ([5, 6], [0, 2, 1], "bounds.npy: its bounds are not those of its ids"),
        ([5, 6], [1, 1, 2], "bounds.npy: its bounds are not those of its ids"),
        ([5, 6], [0, 2], "bounds.npy: its bounds are not those of its ids"),
        ([5, 6], [], "bounds.npy: its bounds are not those of its ids"),
    ],
)
def test_ids_that_the_model_has_no_row_for_are_found(tmp_path, tokens, bounds, sentence):
    files = write_shard(
        tmp_path / "shards",
        "train-00000",
        np.array(tokens, dtype=np.int32),
        np.array(bounds, dtype=np.int64),
    )
    verify_files(tmp_path, files)
    with pytest.raises(CorruptFileError, match=re.escape(sentence)):
        Shards(tmp_path, files).check_ids(60)


@pytest.mark.parametrize("content", [np.zeros((2, 2), dtype=int), np.zeros(3)])
def test_a_shard_of_something_else_is_not_opened(tmp_path, content):
    files = write_shard(tmp_path / "shards", "train-00000", content, np.array([0, 1, 2]))
    with pytest.raises(CorruptFileError, match=r"tokens\.npy"):
        Shards(tmp_path, files)


def test_half_a_shard_is_not_opened(tmp_path):
    files = write(tmp_path, PAIRS)
    with pytest.raises(CorruptFileError, match=r"bounds\.npy.*passport"):
        Shards(tmp_path, files[:1])
