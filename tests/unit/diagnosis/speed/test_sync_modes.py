import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.step_split import split
from unit.diagnosis.traffic_run import WIRE_BYTES, traffic_of
from unit.report.fake_run import CONFIG

from dragoman.config import SyncSettings, parse_config
from dragoman.diagnosis.commands import with_settings
from dragoman.diagnosis.speed.bottleneck import Link
from dragoman.diagnosis.speed.causes import causes_of
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.diagnosis.speed.sync_modes import measured, modes_of, settings_for
from dragoman.forecast.sync_modes import LADDER, OPT_IN, Workload, forecast

BASE = 60_880_896
LOCAL_2 = {"sync.mode": "local", "sync.local_steps": 2, "sync.wire": "4bit"}


def modes(folder, network_s=2.0, settings="", sent=WIRE_BYTES):
    run = new_run(folder)
    run.directory.config.write_text(CONFIG + settings)
    parts = with_parts(communication=network_s)
    facts = read(write_steps(run, lambda *_: parts, more=traffic_of(sent, sent)))
    speed = speed_of(facts)
    return modes_of(facts, causes_of(facts, speed, speed.bottleneck))


def test_the_mildest_mode_that_is_enough_is_chosen(tmp_path):
    found = modes(tmp_path)

    assert found.settings == LOCAL_2
    assert found.chosen.step_s == pytest.approx(0.935, abs=0.001)
    assert found.now_s == pytest.approx(2.935, abs=0.001)
    assert found.speed_up(found.chosen) == pytest.approx(2.935 / 0.935, rel=0.001)
    assert [each.settings for each in found.others] == [*LADDER[1:], OPT_IN]


def test_a_run_that_computes_gets_no_forecasts(tmp_path):
    assert modes(tmp_path, network_s=0.05) is None


def test_forecasts_are_relative_to_the_mode_that_the_run_has(tmp_path):
    local = '[sync]\nmode = "local"\nlocal_steps = 2\nwire = "4bit"\n'
    found = modes(tmp_path, settings=local, sent=BASE / 4)

    assert found.now_bytes == pytest.approx(BASE / 4, rel=1e-3)
    assert LADDER[2] not in [each.settings for each in found.others]
    exact = found.others[0]
    assert exact.settings.mode == "fp32"
    assert found.speed_up(exact) < 1
    assert found.chosen.bytes_per_step < found.now_bytes


def test_what_follows_from_other_keys_is_brought_along(tmp_path):
    """The config of a run has a delay of 1, which was a fourth of its 4 steps."""
    local = '[sync]\nmode = "local"\nlocal_steps = 4\nwire = "bf16"\nfragments = 4\ndelay = 1\n'
    found = modes(tmp_path, network_s=20.0, settings=local, sent=2 * BASE / 4)

    assert found.settings["sync.delay"] == found.chosen.settings.delay > 1


@pytest.mark.parametrize("steps", [30, 100], ids=["shorter windows", "a delay beyond them"])
def test_from_diloco_to_local_the_outer_step_is_that_of_local(tmp_path, steps):
    """The config of a run has diloco's rate and momentum, and a delay that local's 12 lack."""
    diloco = f'[sync]\nmode = "diloco"\nlocal_steps = {steps}\n'
    config = parse_config(CONFIG + diloco, "config.toml")
    local = LADDER[-1]
    changes = settings_for(config, local)

    assert changes["sync.mode"] == "local"
    assert with_settings(config, changes).sync == local


def test_what_the_mode_does_not_go_with_is_changed_too(tmp_path):
    found = modes(tmp_path, settings="[optimizer]\naverage_decay = 0.999\n")

    assert found.settings == LOCAL_2 | {"optimizer.average_decay": 0.0}


def test_nothing_that_the_recipe_refuses_is_chosen(tmp_path):
    free = '[optimizer]\nkind = "schedule-free"\n[schedule]\nkind = "constant"\n'
    found = modes(tmp_path, settings=free)

    assert found.settings == {"sync.mode": "bf16"}
    assert len(found.others) == len(LADDER)  # they are forecast all the same


def test_where_nothing_is_allowed_nothing_is_chosen(tmp_path):
    found = modes(tmp_path, settings='[sync]\nmode = "accumulate"\naccumulate = 4\n')

    assert found.chosen is None
    assert found.settings == {}


@pytest.mark.parametrize("mode", ["fp32", "bf16", "local"])
def test_the_forecast_of_the_runs_own_mode_is_what_was_measured(mode):
    own = SyncSettings(mode=mode)
    step = split(compute_s=1.0, network_s=1.5, rest_s=0.01)
    workload = Workload(BASE, 2, 1, 2, compute_s=1.01, backward_s=step.backward_s)
    # At the rate of the link the bytes of a window take half a second more than is waited for.
    window_s = own.window_steps * 1.5
    link = Link(11, bytes_per_step=125e6 * 1.5, carried=125e6 * window_s / (window_s + 0.5))
    workload, way = measured(own, workload, step, link._replace(reading_s=0.1))

    assert forecast(own, workload, way).exposed_s == pytest.approx(
        1.5 if not own.is_local else 1.5 + 0.5 / 8 - own.delay * own.fragments / 8 * 1.01, rel=0.01
    )


def test_the_workers_of_a_host_are_one(tmp_path):
    run = new_run(tmp_path)
    parts = with_parts(communication=2.0)
    facts = read(write_steps(run, lambda *_: parts, ranks=4, more=traffic_of()))
    hosts = {rank: f"host-{rank // 2}" for rank in range(4)}
    object.__setattr__(facts.attempts[-1], "hosts", hosts)
    speed = speed_of(facts)
    found = modes_of(facts, causes_of(facts, speed, speed.bottleneck))

    assert found.settings["sync.group"] == "host"
