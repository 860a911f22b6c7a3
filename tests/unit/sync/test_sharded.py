import pytest
import torch
import torch.distributed as dist
from unit.sync.one_rank import ALONE, gradients_of_all, micro_batches, objective

from dragoman.errors import RunError
from dragoman.sync.sharded import Sharded


@pytest.fixture
def sharded():
    """A group of one rank: what is sharded over it is whole."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = objective()
    yield model, Sharded(model, ALONE)
    dist.destroy_process_group()


@pytest.mark.parametrize("missing_passes", [0, 2])
def test_gradients_are_the_sum_whatever_passes_are_made_for_others(sharded, missing_passes):
    model, sync = sharded
    first, last = micro_batches()
    sync.begin_step(missing_passes)
    sync.forward(first, is_last=False).smoothed.backward()
    sync.forward(last, is_last=True).smoothed.backward()
    for name, expected in gradients_of_all().items():
        torch.testing.assert_close(model.get_parameter(name).grad.full_tensor(), expected)


def test_a_rank_without_memory_ends_the_run_and_names_itself(sharded):
    _, sync = sharded
    with pytest.raises(RunError, match=rf"rank 0 on {ALONE.host} .*micro_batch_tokens"):
        sync.send_nothing()
