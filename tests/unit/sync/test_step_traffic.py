import pytest
import torch

from dragoman.config import SyncSettings
from dragoman.distributed.group import Group
from dragoman.sync import step_traffic
from dragoman.sync.step_traffic import StepTraffic
from dragoman.telemetry.sensors.interface import InterfaceCounters

CPU = torch.device("cpu")


@pytest.fixture
def counters(monkeypatch):
    """What the kernel has counted on the interface, which the test sets."""
    found = {"now": InterfaceCounters(1000, 500)}
    monkeypatch.setattr(step_traffic, "interface_between_ranks", lambda: "eth0")
    monkeypatch.setattr(step_traffic, "read_interface_counters", lambda interface: found["now"])
    return found


def traffic(config, group):
    return StepTraffic(config.sync, "none", group, sizes=[1_000_000], hosts=[group.host, "n2"])


def test_a_step_has_the_bytes_that_passed_since_it_began(counters, digits_config):
    found = traffic(digits_config, Group(0, 2, 0, CPU))
    found.begin_step()
    counters["now"] = InterfaceCounters(5000, 700)
    of_step = found.of_step(1)
    assert (of_step["sent"], of_step["received"]) == (4000, 200)
    assert of_step["predicted"] > 4 * 1_000_000  # the gradients, and the headers of packets


@pytest.mark.parametrize(("mode", "sent"), [("fp32", 1000), ("local", 4000)])
def test_what_travels_between_two_steps_is_counted_with_the_second(
    counters, digits_config, mode, sent
):
    """Gradients do not, so that what passes then is something else."""
    config = digits_config.model_copy(update={"sync": SyncSettings(mode=mode)})
    found = traffic(config, Group(0, 2, 0, CPU))
    found.begin_step()
    found.of_step(2)  # after which a fragment sets out
    counters["now"] = InterfaceCounters(4000, 500)
    found.begin_step()
    counters["now"] = InterfaceCounters(5000, 500)
    assert found.of_step(3)["sent"] == sent


def test_what_a_save_sends_between_two_steps_is_left_out(counters, digits_config):
    config = digits_config.model_copy(update={"sync": SyncSettings(mode="local")})
    found = traffic(config, Group(0, 2, 0, CPU))
    found.begin_step()
    found.of_step(2)
    counters["now"] = InterfaceCounters(4000, 500)
    found.leave_out()
    found.begin_step()
    assert found.of_step(3)["sent"] == 0


def test_steps_inside_a_window_are_predicted_to_send_nothing(counters, digits_config):
    burst = SyncSettings(mode="local", fragments=1)
    local = digits_config.model_copy(update={"sync": burst})
    found = traffic(local, Group(0, 2, 0, CPU))
    found.begin_step()
    assert found.of_step(7)["predicted"] == 0
    assert found.of_step(8)["predicted"] > 4 * 1_000_000
    assert found.of_step(9, is_last=True)["predicted"] == found.of_step(8)["predicted"]


def test_the_last_step_also_sends_what_is_left_of_fragments_on_their_way(counters, digits_config):
    """A fragment sets out after step 14 and takes two steps; all others are common until then."""
    streamed = SyncSettings(mode="local", local_steps=8, fragments=4, delay=2)
    local = digits_config.model_copy(update={"sync": streamed})
    group = Group(0, 2, 0, CPU)
    found = StepTraffic(local.sync, "none", group, sizes=[250_000] * 4, hosts=[group.host, "n2"])
    found.begin_step()
    window = sum(found.of_step(step)["predicted"] for step in range(8, 16))
    for last, left in ((15, 1 / 4), (16, 1 / 8)):
        of_last = found.of_step(last, is_last=True)["predicted"]
        assert of_last == pytest.approx((1 + left) * window)


def test_other_ranks_of_a_host_and_a_rank_alone_count_nothing(counters, digits_config):
    for group in (Group(1, 2, 1, CPU), Group(0, 1, 0, CPU)):
        found = traffic(digits_config, group)
        found.begin_step()
        assert found.of_step(1) == {}


def test_an_interface_without_counters_costs_only_the_figures(counters, digits_config):
    counters["now"] = None
    found = traffic(digits_config, Group(0, 2, 0, CPU))
    found.begin_step()
    assert found.of_step(1) == {}


def test_it_follows_a_run_that_goes_on_in_another_mode(counters, digits_config):
    found = traffic(digits_config, Group(0, 2, 0, CPU))
    found.begin_step()
    exact = found.of_step(1)["predicted"]
    found.follow(SyncSettings(mode="bf16"))
    assert found.of_step(2)["predicted"] == pytest.approx(exact / 2, rel=1e-3)
    found.follow(SyncSettings(mode="local", local_steps=4, fragments=1, wire="4bit"))
    assert found.of_step(3)["predicted"] == 0
    assert found.of_step(4)["predicted"] == pytest.approx(exact / 8, rel=1e-3)
