import pytest
import torch
from injection import OUT_OF_MEMORY

from dragoman.sync import is_out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(OUT_OF_MEMORY),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUDA error: out of memory"),
        MemoryError(),
    ],
)
def test_memory_that_ran_out_is_recognized(error):
    assert is_out_of_memory(error)


def test_the_allocator_of_this_torch_says_what_is_looked_for():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    "error",
    [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), KeyboardInterrupt(), OSError(28)],
)
def test_other_errors_are_not_taken_for_it(error):
    assert not is_out_of_memory(error)
