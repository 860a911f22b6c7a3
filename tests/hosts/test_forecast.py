"""`dragoman train --hosts` looks ahead: it measures, forecasts, asks, and compares."""

import os
import sys
import threading

import pytest
import tomli_w
from labs import lab
from processes import dragoman, losses, sentence, start_dragoman, wait_until
from recorded import events

from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import ForecastMade

pytestmark = pytest.mark.timeout(600)

# 733,000 parameters: at 20 Mbit/s each host sends for more than a second in each step.
MODEL = ["--set", "model.width=128", "--set", "model.filter=1024"]
PAID = ["--set", "cost.budget=0.000001"]


def write_hosts(it, folder, count, price=0.0):
    hosts = [
        {
            "name": node.name,
            "address": str(node.address),
            "folder": str(folder / node.name),
            "python": sys.executable,
            "devices": 1,
            "price_per_hour": price,
        }
        for node in it.nodes[:count]
    ]
    path = folder / "hosts.toml"
    path.write_text(tomli_w.dumps({"ssh_config": str(it.ssh_config), "hosts": hosts}))
    return path


def test_a_run_that_costs_too_much_is_refused_and_with_yes_it_is_forecast_and_recorded(
    digits, tmp_path
):
    run = tmp_path / "runs" / "dear"
    with lab(nodes=2, rate="20mbit") as it:
        hosts = write_hosts(it, tmp_path, 2, price=3.0)
        command = ["train", digits, "--run", run, "--hosts", hosts, *MODEL, *PAID]
        command += ["--set", "training.steps=6"]
        said = sentence(dragoman(*command), 3)
        assert "cost.budget" in said
        assert "--yes" in said
        assert not run.exists()
        assert not [*(tmp_path / "node1").iterdir()]

        done = dragoman(*command, "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        (made,) = events(RunDir(run), ForecastMade)
        assert (made.hosts, made.ranks) == (["node1", "node2"], 2)
        assert made.step_low_s <= made.step_s <= made.step_high_s
        assert made.exposed_s > made.compute_s
        assert made.host_prices == {"node1": 3.0, "node2": 3.0}
        for rate in (*made.sent_bytes_per_s.values(), *made.received_bytes_per_s.values()):
            assert rate == pytest.approx(20e6 / 8, rel=0.15)

        again = dragoman(*command, "--yes", "--set", "training.steps=8")
        assert again.returncode == 0, again.stdout + again.stderr
        assert "measuring" in done.stdout
        assert "measuring" not in again.stdout
        assert len(events(RunDir(run), ForecastMade)) == 2
    assert dragoman("report", run).returncode in (0, 3)
    answers = read_json(RunDir(run).report("json"))["answers"]
    figures = {f["name"]: f for answer in answers for f in answer["evidence"]}
    measured, forecast = figures["mean step"]["value"], figures["forecast step"]["value"]
    assert 0.6 < measured / forecast < 1.6
    assert figures["cost"]["value"] > 0


def test_a_link_that_becomes_slower_is_told_with_its_host_while_the_run_goes_on(digits, tmp_path):
    run = tmp_path / "runs" / "slower"
    lines: list[str] = []
    with lab(nodes=3, rate="1gbit") as it:
        hosts = write_hosts(it, tmp_path, 3)
        options = ["--set", "training.micro_batch_tokens=150", "--set", "training.steps=100000"]
        options += ["--set", "evaluation.every_steps=100000", "--yes"]
        process = start_dragoman(
            *("train", digits, "--run", run, "--hosts", hosts, *MODEL, *options),
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

        def read():
            for line in process.stdout:
                lines.append(line)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            wait_until(lambda: max(losses(run), default=0) >= 20, 200)
            it.rate("node2", "20mbit")
            wait_until(lambda: any("has become slower" in line for line in lines), 200)
        finally:
            process.terminate()
            process.wait(timeout=100)
            reader.join()
            process.stdout.close()
            process.stderr.close()
            process.stdin.close()
    told = [line for line in lines if "has become slower" in line]
    assert len(told) == 1
    assert "node2" in told[0]
    assert "node1" not in told[0]
    assert "node3" not in told[0]
