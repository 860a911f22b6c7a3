import pytest
import torch
import torch.distributed as dist

from dragoman.sync import compressed
from dragoman.sync.compressed import Bf16Sums, sum_over_ranks


@pytest.fixture
def one_rank():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_sum_is_rounded_to_bf16(one_rank):
    buffer = torch.tensor([1.0, 1.001, -3.14159, 0.0, 1e-30])
    expected = buffer.bfloat16().float()
    sum_over_ranks(buffer, None)
    assert buffer.tolist() == expected.tolist()


class Ranks:
    """Collectives of three ranks, of which the others have sent what the test says."""

    def __init__(self, others):
        self.others = others
        self.gathered = None

    def get_world_size(self, channel):
        return 1 + len(self.others)

    def all_to_all_single(self, received, sent, group):
        ranks = self.get_world_size(group)
        of_each = [sent.view(torch.bfloat16), *self.others]
        received.view(torch.bfloat16).view(ranks, -1).copy_(
            torch.stack([each.view(ranks, -1)[0] for each in of_each])
        )

    def all_gather(self, slices, own, group):
        self.gathered = own.view(torch.bfloat16)
        for part in slices:
            part.copy_(own)


def test_slices_are_added_in_fp32_in_the_order_of_the_ranks_and_rounded_once(monkeypatch):
    """In bf16, 256 + 1 is 256, however often it is added."""
    others = [torch.full((3,), value).bfloat16() for value in (1.0, 1.0)]
    ranks = Ranks(others)
    monkeypatch.setattr(compressed, "dist", ranks)
    buffer = torch.full((2,), 256.0)  # padded to a slice for each rank
    sum_over_ranks(buffer, None)
    assert ranks.gathered.tolist() == [258.0]
    assert buffer.tolist() == [258.0, 258.0]


def test_sums_are_made_in_the_background_in_their_order(one_rank):
    sums = Bf16Sums(torch.device("cpu"))
    buffers = [torch.full((5,), float(number)) for number in range(20)]
    futures = [sums.begin(buffer) for buffer in buffers]
    assert [future.wait()[0].item() for future in futures] == [float(n) for n in range(20)]
    sums.close()


def test_a_sum_that_fails_is_told_to_whoever_waits_for_it(one_rank, monkeypatch):
    def lost(buffer, channel):
        raise RuntimeError("Connection closed by peer [10.0.0.2]:1234")

    monkeypatch.setattr(compressed, "sum_over_ranks", lost)
    sums = Bf16Sums(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="Connection closed by peer"):
        sums.begin(torch.zeros(3)).wait()
    sums.close()
