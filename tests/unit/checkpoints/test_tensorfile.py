import pytest
import safetensors
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from dragoman.checkpoints import tensorfile
from dragoman.checkpoints.folders import write_file
from dragoman.checkpoints.tensorfile import TensorImage
from dragoman.rundir import sha256_of

KINDS = [*tensorfile._KINDS]


def tensor_of(kind, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def test_the_library_reads_what_is_written_of_every_type(tmp_path):
    tensors = {f"{kind} ü|x": tensor_of(kind, (3, 5), 1) for kind in KINDS}
    tensors |= {"one": torch.tensor(7.0), "none": torch.empty(0, 4)}
    image = TensorImage()
    image.take(tensors)
    path = tmp_path / "x.safetensors"
    fingerprint = write_file(path, image.chunks())
    loaded = load_file(path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
    assert fingerprint == {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}


@given(
    shapes=st.lists(st.lists(st.integers(0, 5), max_size=3), max_size=6),
    kinds=st.lists(st.sampled_from(KINDS), min_size=6, max_size=6),
    chunk_bytes=st.integers(1, 64),
)
def test_any_mixture_of_shapes_comes_back(tmp_path_factory, shapes, kinds, chunk_bytes):
    tensors = {
        f"t{n}": tensor_of(kind, shape, n)
        for n, (shape, kind) in enumerate(zip(shapes, kinds, strict=False))
    }
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    image = TensorImage()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorfile, "CHUNK_BYTES", chunk_bytes)
        image.take(tensors)
        write_file(path, image.chunks())
    loaded = load_file(path)
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def test_a_copy_is_not_changed_by_what_is_copied_and_its_memory_is_used_again(tmp_path):
    weight = torch.arange(6.0).reshape(2, 3)
    image = TensorImage()
    image.take({"weight": weight.t()})
    memory = image._content.data_ptr()
    weight += 1
    write_file(tmp_path / "old", image.chunks())
    image.take({"weight": weight.t()})
    assert image._content.data_ptr() == memory
    write_file(tmp_path / "new", image.chunks())
    assert torch.equal(load_file(tmp_path / "old")["weight"], weight.t() - 1)
    assert torch.equal(load_file(tmp_path / "new")["weight"], weight.t())


def test_what_no_file_can_hold_is_named():
    with pytest.raises(TypeError, match=r"gate: .*torch\.complex"):
        TensorImage().take({"gate": torch.zeros(2, dtype=torch.complex64)})
