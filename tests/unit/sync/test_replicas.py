import torch
from unit.sync.one_rank import ALONE, gradients_of_all, micro_batches, objective

from dragoman.sync.islands import Islands
from dragoman.sync.replicas import Replicas

ONE_ISLAND = Islands(of_rank=(0,), own=0)


def step(replicas):
    replicas.begin_step()
    first, last = micro_batches()
    replicas.forward(first, is_last=False).smoothed.backward()
    replicas.forward(last, is_last=True).smoothed.backward()


def test_micro_batches_add_up_to_the_gradients_of_the_step():
    model = objective()
    replicas = Replicas(model, ALONE, ONE_ISLAND)
    for _ in range(2):  # the second step forgets the first
        step(replicas)
        for name, expected in gradients_of_all().items():
            torch.testing.assert_close(model.get_parameter(name).grad, expected)


def test_one_rank_sends_nothing_and_can_begin_again_after_running_out_of_memory():
    model = objective()
    replicas = Replicas(model, ALONE, ONE_ISLAND)
    replicas.begin_step()
    replicas.forward(micro_batches()[0], is_last=False).smoothed.backward()
    replicas.send_nothing()
    replicas.renew()
    assert all(weight.grad is None for weight in model.parameters())
    step(replicas)
    assert replicas.last_ready is None
    for name, expected in gradients_of_all().items():
        torch.testing.assert_close(model.get_parameter(name).grad, expected)
