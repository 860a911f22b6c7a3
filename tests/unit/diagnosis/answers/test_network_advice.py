import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import WIRE_BYTES, figure, slow_link, traffic_of
from unit.report.fake_run import CONFIG

from dragoman.diagnosis.answers import network
from dragoman.forecast.sync_modes import QUALITY_COST


def test_a_link_that_has_recovered_is_told_to_be_over(tmp_path):
    def parts(rank, number):
        return with_parts(communication=2.0 if number <= 30 else 0.02)

    found = network.answer(read(write_steps(new_run(tmp_path), parts, more=traffic_of())))

    assert found.verdict == "network-bound"
    assert figure(found, "until step") == 30
    assert found.advice_text.startswith("It has been over since step 31;")


def advice_on(run):
    return network.answer(read(run)).advice


def slow_run(tmp_path, network_s=2.0, **traffic):
    parts = with_parts(communication=network_s)
    return write_steps(new_run(tmp_path), lambda *_: parts, more=traffic_of(**traffic))


def test_the_mildest_mode_that_is_enough_is_advised_as_a_new_run_and_as_lines_of_a_recipe(tmp_path):
    (mode,) = [a for a in advice_on(slow_run(tmp_path)) if "sync.mode" in a.command]

    assert mode.command.endswith(
        f"--run {tmp_path / 'run-2'} --hosts host-0,host-1 --set 'sync.mode=\"local\"' "
        "--set sync.local_steps=2 --set 'sync.wire=\"4bit\"'"
    )
    assert mode.recipe == '[sync]\nmode = "local"\nlocal_steps = 2\nwire = "4bit"'
    assert "a step would take about 935 ms instead of 2.93 s" in mode.text
    assert "with 15.2 MB instead of 244 MB per step and host" in mode.text
    assert mode.text.endswith(QUALITY_COST["local"])
    assert mode.saves_s == pytest.approx(59 * 2.0)  # the first step is no example


def test_each_mode_is_forecast_on_the_figures_of_the_run(tmp_path):
    found = network.answer(read(slow_run(tmp_path)))
    forecasts = [each for each in found.evidence if each.name.startswith("step with sync.mode ")]

    assert [each.name.removeprefix("step with sync.mode ") for each in forecasts] == [
        "bf16",
        "local, 2 steps, 4bit",
        "local, 4 steps, 4bit",
        "local, 8 steps, 4bit",
        "local, 12 steps, 4bit",
        "diloco, 30 steps, 4bit",
    ]
    assert forecasts[1].value == pytest.approx(0.935, abs=0.001)
    assert forecasts[1].note == ("forecast: 15.2 MB per step and host, 3.14 times as fast; advised")
    assert "never advised" in forecasts[-1].note


def test_what_does_not_go_with_the_mode_is_named(tmp_path):
    run = new_run(tmp_path)
    run.directory.config.write_text(CONFIG + "[optimizer]\naverage_decay = 0.999\n")
    write_steps(run, lambda *_: with_parts(communication=2.0), more=traffic_of())
    (mode,) = [a for a in advice_on(run) if "sync.mode" in a.command]

    assert mode.text.endswith("does not go with optimizer.average_decay, which is changed too.")
    assert "--set optimizer.average_decay=0.0" in mode.command
    assert mode.recipe.endswith("[optimizer]\naverage_decay = 0.0")


def test_larger_updates_are_advised_where_no_mode_is_left(tmp_path):
    run = new_run(tmp_path)
    larger = '[sync]\nmode = "accumulate"\naccumulate = 2\n'
    run.directory.config.write_text(CONFIG + larger)
    write_steps(run, lambda *_: with_parts(communication=2.0), more=traffic_of())
    (found,) = [a for a in advice_on(run) if "tokens_per_update" in a.command]

    assert "--set training.tokens_per_update=100000" in found.command
    assert f"--run {tmp_path / 'run-2'} --hosts host-0,host-1 " in found.command
    assert found.saves_s == pytest.approx(60 * 2.0 / 2)


def test_bytes_that_the_gradients_do_not_need_are_looked_for(tmp_path):
    commands = [a.command for a in advice_on(slow_run(tmp_path, sent=2 * WIRE_BYTES))]

    assert any(command.startswith("ssh host-0 'ss ") for command in commands)


def test_a_host_alone_is_advised_where_it_is_faster(tmp_path):
    found = advice_on(slow_run(tmp_path, network_s=20.0))
    (alone,) = [advice for advice in found if advice.command.endswith("--hosts host-0")]

    assert alone.saves_s == pytest.approx(60 * (20.0 - 0.92), rel=0.01)


def test_of_two_ways_to_send_less_the_one_that_saves_more_comes_first(tmp_path):
    saved_s = [advice.saves_s for advice in advice_on(slow_run(tmp_path, network_s=20.0))]

    assert len(saved_s) == 2
    assert saved_s == sorted(saved_s, reverse=True)


def test_a_port_that_announces_more_than_passes_is_looked_at(tmp_path):
    found = advice_on(slow_link(new_run(tmp_path), network_s=20.0, rate=12.5e6))[0]

    assert found.command == ("ssh host-0 'cat /sys/class/net/eth0/speed; tc qdisc show dev eth0'")
    assert found.saves_s == pytest.approx(60 * 20 * 0.9, rel=0.05)


def test_a_port_as_fast_as_it_announces_is_not_looked_at(tmp_path):
    commands = [a.command for a in advice_on(slow_link(new_run(tmp_path)))]

    assert not [command for command in commands if "/sys/class/net" in command]


def test_at_most_three_things_are_advised(tmp_path):
    run = slow_link(new_run(tmp_path), network_s=20.0, rate=12.5e6, sent=2 * WIRE_BYTES)

    assert len(advice_on(run)) == 3


def test_saving_that_holds_up_the_steps_is_done_less_often(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(checkpoint=1.0))
    (found,) = advice_on(run)

    assert "--set checkpoints.lost_minutes=20.0" in found.command
    assert found.saves_s is None  # that is told with the steps


def test_a_run_that_computes_needs_no_advice(tmp_path):
    assert advice_on(write_steps(new_run(tmp_path), lambda *_: with_parts())) == []
