import pytest
import torch

from dragoman.decoding import engines
from dragoman.decoding.engine import Cpu
from dragoman.decoding.engines import chosen_engine, find_device, open_ensemble
from dragoman.errors import UserError

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_auto_is_ctranslate2_on_a_cpu_and_torch_on_a_gpu():
    assert chosen_engine(CPU, "auto", "float32") == "ctranslate2"
    assert chosen_engine(GPU, "auto", "float32") == "torch"
    assert chosen_engine(CPU, "torch", "float32") == "torch"
    assert chosen_engine(GPU, "ctranslate2", "float32") == "ctranslate2"
    assert chosen_engine(GPU, "auto", "int8") == "ctranslate2"


def test_torch_is_asked_for_a_gpu_only_where_there_is_a_driver(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(engines, "has_gpu_driver", lambda: True)
    assert find_device("auto") == find_device("cuda") == torch.device("cuda", 0)
    assert find_device("cpu") == Cpu()
    monkeypatch.setattr(engines, "has_gpu_driver", lambda: False)
    assert find_device("auto") == Cpu()
    assert torch.device(str(Cpu())) == CPU


def test_without_ctranslate2_auto_is_torch_and_what_needs_it_is_refused(monkeypatch):
    monkeypatch.setattr(engines, "CTRANSLATE2_PROBLEM", "No module named 'ctranslate2'")
    assert chosen_engine(CPU, "auto", "float32") == "torch"
    for engine, precision in (("ctranslate2", "float32"), ("auto", "int8")):
        with pytest.raises(UserError, match="pip install ctranslate2"):
            chosen_engine(CPU, engine, precision)
    with pytest.raises(UserError, match="int8"):
        chosen_engine(CPU, "torch", "int8")


@pytest.mark.parametrize("wrong", [{"engine": "ctranslate2"}, {"precision": "int8"}])
def test_ctranslate2_translates_with_one_model(wrong):
    with pytest.raises(UserError, match=next(iter(wrong.values()))) as caught:
        open_ensemble([None, None], CPU, **wrong)
    assert "torch" in str(caught.value)
