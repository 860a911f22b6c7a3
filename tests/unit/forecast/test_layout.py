import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from dragoman.batches.collate import smallest_batch
from dragoman.config import ModelSettings
from dragoman.forecast.layout import (
    buckets_of,
    even_buckets,
    fragments_of,
    gradients_of,
    weights_of,
)
from dragoman.model.loss import Objective
from dragoman.model.size import count_parameters
from dragoman.model.transformer import Transformer

SMALL = ModelSettings(preset="transformer-small", width=64, filter=128, heads=2)
BASE = ModelSettings(preset="transformer-base")


def test_weights_stand_in_the_order_of_the_real_model():
    real = Transformer(SMALL, 500).named_parameters()
    assert [(name, each.numel()) for name, each in real] == [*map(tuple, weights_of(SMALL, 500))]


def test_gradients_are_made_in_the_order_of_the_real_backward():
    objective = Objective(Transformer(SMALL, 500), 0.1)
    made = []
    for name, parameter in objective.named_parameters():
        parameter.register_post_accumulate_grad_hook(
            lambda _, name=name: made.append(name.removeprefix("model."))
        )
    objective(smallest_batch()).smoothed.backward()

    assert made == [tensor.name for tensor in gradients_of(SMALL, 500)]


@pytest.mark.parametrize("bucket_mb", [None, 0.05, 1.0])
def test_buckets_are_those_of_ddp(bucket_mb):
    """In a group of one rank, since buckets do not depend on their number."""
    objective = Objective(Transformer(SMALL, 9000), 0.1)
    sent = []

    def send(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        sent.append(bucket.buffer().numel())
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        parallel = DistributedDataParallel(
            objective, bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True
        )
        parallel.register_comm_hook(None, send)
        parallel(smallest_batch()).smoothed.backward()
        parallel.reducer._rebuild_buckets()
        sent.clear()
        parallel(smallest_batch()).smoothed.backward()
    finally:
        dist.destroy_process_group()

    assert [bucket.elements for bucket in buckets_of(SMALL, 9000, bucket_mb)] == sent


def test_buckets_and_fragments_hold_every_parameter_once():
    parameters = count_parameters(BASE, 32_768)
    assert sum(bucket.elements for bucket in buckets_of(BASE, 32_768)) == parameters
    assert sum(bucket.elements for bucket in fragments_of(BASE, 32_768, 4)) == parameters
    assert len(fragments_of(BASE, 32_768, 4)) == 4


def test_the_embedding_is_ready_last_and_with_it_more_than_a_quarter_of_the_bytes():
    buckets = buckets_of(BASE, 32_768)

    assert buckets[0].elements * 4 < 6 * 2**20
    assert [bucket.ready_share for bucket in buckets] == sorted(
        bucket.ready_share for bucket in buckets
    )
    assert buckets[-1].ready_share == 1.0
    assert buckets[-1].elements > count_parameters(BASE, 32_768) / 4


def test_even_buckets_are_ready_from_the_first_moment_to_the_last():
    assert [bucket.ready_share for bucket in even_buckets(90, 3)] == [0.0, 0.5, 1.0]
    assert len(even_buckets(90, 1)) == 1
