import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import ModelSettings, SyncSettings
from dragoman.distributed.fragments import FragmentSchedule
from dragoman.distributed.ring_bytes import mean_bytes_of_mode
from dragoman.forecast.collectives import Network
from dragoman.forecast.layout import Bucket, buckets_of
from dragoman.forecast.overlap import Message
from dragoman.forecast.processing import CPU, GPU
from dragoman.forecast.step import (
    Model,
    Work,
    beside_backward,
    forecast_step,
    gradient_message,
    simulate_window,
)
from dragoman.forecast.sync_modes import LADDER, OPT_IN
from dragoman.model.size import count_parameters

BASE = ModelSettings(preset="transformer-base")
MODEL = Model(BASE, 32_768, count_parameters(BASE, 32_768))
WORK = Work(forward_s=0.6, backward_s=1.1, last_backward_s=1.1, update_s=0.1)
MODES = [*LADDER, OPT_IN, SyncSettings(mode="accumulate", accumulate=4)]


def network(hosts=4, on_host=1, rate=12.5e6, latency_s=0.0):
    return Network(hosts, on_host, rate, rate, rate, latency_s, 2e9, 0.0)


def test_the_users_own_step_at_100_mbit_takes_half_a_minute():
    """60,880,896 parameters in fp32 on four nodes: 365 MB each way, about 31 s a step."""
    found = forecast_step(SyncSettings(), MODEL, WORK, network(), GPU)

    assert MODEL.parameters == 60_880_896
    assert found.bytes_per_step == pytest.approx(365.3e6, rel=1e-3)
    assert 29 < found.step_s < 32
    assert found.exposed_s == pytest.approx(found.sending_s - 1.1, abs=0.1)


def test_the_workers_agreement_waits_behind_weights_that_travel():
    local = SyncSettings(mode="local", local_steps=4, wire="bf16")
    before, behind = (
        forecast_step(local, MODEL, WORK, network()._replace(queue_s=queue_s), GPU)
        for queue_s in (0.0, 0.05)
    )
    # The link is always busy; a ring of four has six steps.
    assert behind.message_s - before.message_s == pytest.approx(6 * 0.05, rel=0.1)
    gradients = forecast_step(SyncSettings(), MODEL, WORK, network()._replace(queue_s=0.05), GPU)
    assert gradients.message_s == 0.0


def test_at_1_gbit_the_same_step_waits_two_to_three_seconds():
    found = forecast_step(SyncSettings(), MODEL, WORK, network(rate=125e6), GPU)

    assert 2 < found.sending_s < 3
    assert 1.8 + 1.5 < found.step_s < 1.8 + 3


def test_buckets_leave_as_backward_makes_them():
    """Ready after 1 s and 2 s of 2 s; 1.5 s each: the second waits for the first until 2.5 s."""
    buckets = [Bucket(1, 0.5), Bucket(1, 1.0)]
    timeline = beside_backward(buckets, [Message(1.5)] * 2, 2.0)

    assert (timeline.now_s, timeline.exposed_s) == (4.0, 2.0)


def test_however_fast_backward_is_outrun_the_last_bucket_is_exposed():
    """With the embedding in it, that is more than a quarter of all bytes."""
    found = forecast_step(SyncSettings(), MODEL, WORK, network(rate=12.5e9), GPU)
    last = gradient_message(buckets_of(BASE, 32_768)[-1], network(rate=12.5e9), GPU, False)

    assert found.exposed_s == pytest.approx(last.alone_s)
    assert found.exposed_s > found.sending_s / 4


def test_a_fragment_has_the_steps_of_its_delay_to_travel():
    """Four fragments of 2.44 s each beside two steps of 1 s: each is waited for 0.44 s."""
    schedule = FragmentSchedule(window_steps=8, fragments=4, delay=2)
    window = simulate_window(schedule, [Message(2.44)] * 4, [0.0] * 4, step_s=1.0)

    assert window.exposed_s == pytest.approx(4 * 0.44)


def test_communication_on_the_computing_cores_slows_them_down():
    on_gpu, on_cpu = (
        forecast_step(SyncSettings(), MODEL, WORK, network(rate=125e6), each) for each in (GPU, CPU)
    )
    assert on_gpu.slowed_s == 0 < on_cpu.slowed_s
    assert on_cpu.step_s > on_gpu.step_s


def test_workers_of_a_host_that_are_one_send_less_and_wait_less():
    of_ranks = SyncSettings(mode="local", local_steps=8, wire="bf16")
    of_hosts = of_ranks.model_copy(update={"group": "host"})
    ranks, hosts = (
        forecast_step(each, MODEL, WORK, network(on_host=4, rate=2e7), GPU)
        for each in (of_ranks, of_hosts)
    )
    assert hosts.bytes_per_step < ranks.bytes_per_step / 2
    assert hosts.step_s < ranks.step_s


def test_on_one_host_islands_of_hosts_sum_exactly():
    of_hosts = SyncSettings(mode="local", local_steps=8, group="host")
    alone = network(hosts=1, on_host=4)
    exact = forecast_step(SyncSettings(), MODEL, WORK, alone, GPU)

    assert forecast_step(of_hosts, MODEL, WORK, alone, GPU).step_s == exact.step_s


def test_sharded_workers_send_more_and_a_layer_is_always_waited_for():
    sharded = MODEL._replace(is_sharded=True, passes=2)
    found = forecast_step(SyncSettings(), sharded, WORK, network(), GPU)
    whole = forecast_step(SyncSettings(), MODEL, WORK, network(), GPU)

    assert found.bytes_per_step == pytest.approx(2.5 * whole.bytes_per_step)
    assert found.step_s > whole.step_s


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_one_worker_has_no_communication(mode):
    found = forecast_step(mode, MODEL, WORK, network(hosts=1), CPU)
    assert (found.bytes_per_step, found.sending_s, found.step_s) == (0, 0, WORK.seconds)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("hosts", [2, 3, 8])
@pytest.mark.parametrize("on_host", [1, 2])
def test_bytes_are_those_of_the_formula(mode, hosts, on_host):
    found = forecast_step(mode, MODEL, WORK, network(hosts, on_host), GPU)
    expected = mean_bytes_of_mode(mode, MODEL.parameters, hosts * on_host, on_host, hosts)
    assert found.bytes_per_step == expected


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODES),
    st.integers(2, 16),
    st.integers(1, 4),
    st.floats(1e5, 1e10),
    st.floats(1.0, 100.0),
    st.sampled_from([CPU, GPU]),
)
def test_more_bandwidth_never_makes_a_step_longer(mode, hosts, on_host, rate, factor, processor):
    slow, fast = (
        forecast_step(mode, MODEL, WORK, network(hosts, on_host, each, 1e-4), processor)
        for each in (rate, factor * rate)
    )
    assert fast.step_s <= slow.step_s * (1 + 1e-6)
    for found in (slow, fast):
        assert found.exposed_s <= found.sending_s * (1 + 1e-6)
        assert found.step_s >= found.compute_s
