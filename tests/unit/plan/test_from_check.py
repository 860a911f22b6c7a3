import pytest
from checked import checked

from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.plan.data import data_of
from dragoman.plan.from_check import setup_from_check
from dragoman.plan.modes import forecast_mode

CONFIG = load_config("wmt16-en-de")
DATA = data_of(CONFIG, 4)


def setup_of(result):
    return setup_from_check(CONFIG, result, data_of(CONFIG, len(result.hosts)))


def test_whole_steps_tell_what_their_parts_do_not():
    parts = setup_of(checked())
    alone_s = forecast_mode(CONFIG, CONFIG.sync, parts, DATA).step_s
    for beyond_s in (0.4, -0.1):
        whole = setup_of(checked(whole_step_s=(alone_s + beyond_s,) * 3))
        step_s = forecast_mode(CONFIG, CONFIG.sync, whole, DATA).step_s
        assert step_s == pytest.approx(alone_s + beyond_s / 2, rel=0.01)
        assert whole.hop_rate == parts.hop_rate


def test_whole_steps_that_differ_from_their_parts_widen_computing():
    parts = setup_of(checked())
    alone_s = forecast_mode(CONFIG, CONFIG.sync, parts, DATA).step_s
    agree, differ = (
        setup_of(checked(whole_step_s=(alone_s + beyond_s,) * 3)).computing.factor
        for beyond_s in (0.0, 0.4)
    )
    assert agree[:3] == pytest.approx(parts.computing.factor[:3], rel=1e-6)
    assert differ.low < agree.low < agree.high < differ.high


def test_the_interval_of_computing_follows_from_the_spread_of_steps():
    calm = setup_of(checked(step_s=(0.5, 0.5, 0.5, 0.5))).computing.factor
    rough = setup_of(checked(step_s=(0.4, 0.5, 0.5, 0.6))).computing.factor
    assert (calm.low, calm.high) == pytest.approx((0.83, 1.17))
    assert rough.low < 0.7 < 1.3 < rough.high


def test_computing_is_that_of_the_slowest_worker_step_by_step():
    result = checked()
    slower = result.computing[2].model_copy(update={"step_s": (0.6, 0.5, 0.55)})
    steps = (*result.computing[:2], slower, result.computing[3])
    setup = setup_of(result.model_copy(update={"computing": steps}))

    assert setup.work("likely").seconds == pytest.approx((0.6 + 0.52 + 0.55) / 3)
    assert setup.computing.factor.is_measured
    assert setup.work("fast").seconds < 0.55 < setup.work("slow").seconds


def test_the_slowest_worker_need_not_have_the_most_micro_batches():
    """The step takes what its slowest worker takes, whichever share that has."""
    result = checked()
    other = result.computing[1].model_copy(update={"micro_batches": 2, "step_s": (0.3, 0.3, 0.3)})
    steps = (result.computing[0], other, *result.computing[2:])
    setup = setup_of(result.model_copy(update={"computing": steps}))
    assert setup.work("likely").seconds == pytest.approx(0.51)


def test_without_steps_computing_follows_from_products():
    setup = setup_of(checked(has_computing=False))
    assert not setup.computing.factor.is_measured
    assert setup.work("likely").seconds > 0


def test_a_check_without_speed_or_network_is_refused():
    with pytest.raises(UserError, match="products"):
        setup_of(checked(has_computing=False, gemm_flops_per_s=None))
    with pytest.raises(UserError, match="between"):
        setup_of(checked(has_collective=False).model_copy(update={"transfers": ()}))


def test_one_host_needs_no_network():
    setup = setup_of(checked(hosts=1))
    assert (setup.hosts, setup.ranks) == (1, 1)


def test_unequal_hosts_have_as_many_workers_in_all():
    result = checked()
    first = result.hosts[0].model_copy(update={"workers": 5})
    setup = setup_of(result.model_copy(update={"hosts": (first, *result.hosts[1:])}))
    assert setup.ranks == 8


def test_memory_and_prices_are_those_of_the_hosts():
    setup = setup_of(checked())
    assert setup.memory_bytes.value == 8e9
    assert setup.peak_memory_bytes.value == 2e9
    assert setup.price_per_hour == 2.0
