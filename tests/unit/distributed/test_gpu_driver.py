import torch

from dragoman.distributed import gpu_driver
from dragoman.distributed.gpu_driver import has_gpu_driver


def test_where_torch_finds_a_gpu_there_is_a_driver():
    assert has_gpu_driver() or not torch.cuda.is_available()


def test_a_driver_is_a_library_that_loads_or_a_device_of_rocm(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_driver, "ROCM_DEVICE", tmp_path / "kfd")
    monkeypatch.setattr(gpu_driver, "CUDA_DRIVER", str(tmp_path / "libcuda.so.1"))
    assert not has_gpu_driver()
    (tmp_path / "kfd").touch()
    assert has_gpu_driver()
    monkeypatch.setattr(gpu_driver, "ROCM_DEVICE", tmp_path / "none")
    monkeypatch.setattr(gpu_driver, "CUDA_DRIVER", None)  # the program itself, which is loaded
    assert has_gpu_driver()
