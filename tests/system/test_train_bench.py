"""The pure parts of `make bench-train`: steps become figures, figures become tables."""

import json
from pathlib import Path

import pytest
from train_bench.candidates import steps_of_run
from train_bench.environments import reason_of
from train_bench.measurement import (
    Gemm,
    Measurement,
    Round,
    StepEnd,
    Usage,
    Work,
    cpu_s_at,
    mean_of,
    measurement_of,
    read_loop_work,
    read_step_ends,
    work_between,
)
from train_bench.tables import (
    AIMS,
    NAMES,
    candidates_of,
    figure_table,
    gemm_sentence,
    ratio_table,
    spread,
)
from train_bench.task import SETTINGS

from dragoman.telemetry.events import Stamped, StepDone, to_line

STEP_FIELDS = (0.1, 7.0, 3600, 1e-4, 1.0, True, 1.2)
"""Epoch, loss, tokens, learning rate, gradient norm, whether it was updated, seconds."""
PEERS = Path(__file__).parents[2] / "benchmarks" / "train_bench" / "peers"


def measured(tokens_per_s, flops_per_s=1e9):
    return Measurement(tokens_per_s, flops_per_s, 1.0, 2**30, 5.0, 4000.0)


def rounds_of(**speeds):
    """Rounds in which candidates have these speeds, one a round."""
    counts = {len(of_candidate) for of_candidate in speeds.values()}
    return [
        Round(
            Gemm(2e9, 1.9),
            {name.replace("_", "-"): measured(each[n]) for name, each in speeds.items()},
        )
        for n in range(counts.pop())
    ]


def cells_of(table, first_cell):
    (row,) = (line for line in table.splitlines() if line.startswith(f"| {first_cell} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_steps_of_the_warm_up_are_not_counted():
    steps = [StepEnd(at=10.0 + n, tokens=100 * (n + 1)) for n in range(4)]
    usage = [Usage(0.0, 0.0, 5), Usage(20.0, 40.0, 7)]
    work = work_between(steps, usage, warm_up=2, counted=2)
    assert work == Work(steps=2, tokens=300 + 400, seconds=2.0, cpu_s=pytest.approx(4.0))


def test_a_candidate_that_ends_early_is_not_measured():
    with pytest.raises(ValueError, match="3 steps instead of 4"):
        work_between([StepEnd(1.0, 1)] * 3, [], warm_up=2, counted=2)


@pytest.mark.parametrize(("at", "cpu_s"), [(1.0, 2.0), (1.5, 2.5), (2.0, 3.0), (4.0, 7.0)])
def test_processor_time_is_interpolated_between_samples(at, cpu_s):
    usage = [Usage(1.0, 2.0, 0), Usage(2.0, 3.0, 0), Usage(3.0, 5.0, 0)]
    assert cpu_s_at(usage, at) == pytest.approx(cpu_s), "and goes on at the last rate after them"


def test_a_measurement_is_per_token_and_per_second():
    one = measurement_of(
        Work(steps=4, tokens=8000, seconds=4.0, cpu_s=8.0),
        peak_bytes=3,
        first_step_s=6.0,
        flops_per_token=45e6,
    )
    assert one == Measurement(2000.0, 90e9, 1.0, 3, 6.0, 2000.0)


def test_loops_of_one_process_are_told_apart_without_their_warm_up():
    lines = [
        json.dumps({"loop": loop, "at": 1.0, "tokens": 10, "step_s": seconds, "cpu_s": 2 * seconds})
        for seconds in (9.0, 1.0, 2.0)
        for loop in ("ours", "torch")
    ]
    work = read_loop_work(lines, warm_up=1)
    assert work == {"ours": Work(2, 20, 3.0, 6.0), "torch": Work(2, 20, 3.0, 6.0)}
    assert [end.tokens for end in read_step_ends(lines)] == [10] * 6


def test_ratios_are_taken_within_a_round_and_judged_by_their_median():
    rounds = rounds_of(ours=[300.0, 200.0, 160.0], hugging_face=[200.0, 100.0, 100.0])
    table = ratio_table("residual", rounds)
    pair = f"{NAMES['ours']} / {NAMES['hugging-face']}"
    assert cells_of(table, pair)[1:] == ["1.50", "2.00", "1.60", "1.60 (1.50 to 2.00)", "1.5, met"]
    assert cells_of(ratio_table("all", rounds), pair)[-1] == "none"


def test_a_tool_is_compared_with_the_whole_command_and_a_loop_with_the_loop():
    rounds = rounds_of(ours=[100.0], torch=[50.0], dragoman=[90.0], joeynmt=[30.0])
    table = ratio_table("all", rounds)
    assert cells_of(table, f"{NAMES['ours']} / {NAMES['torch']}")[1] == "2.00"
    assert cells_of(table, f"{NAMES['dragoman']} / {NAMES['joeynmt']}")[1:] == [
        *("3.00", "3.00", "4.0, missed")
    ]


def test_a_candidate_that_failed_in_one_round_is_in_no_table():
    rounds = [*rounds_of(ours=[100.0], eole=[50.0]), *rounds_of(ours=[100.0])]
    assert candidates_of(rounds) == ["ours"]
    assert NAMES["eole"] not in figure_table(rounds)


def test_figures_are_shown_as_median_and_extremes():
    table = figure_table(rounds_of(ours=[1000.0, 3000.0, 1500.0]))
    cells = cells_of(table, NAMES["ours"])
    assert cells[1] == "1,500 (1,000 to 3,000)"
    assert cells[2] == "50", "share of GEMM, equal in all rounds"
    assert spread([1.0, 2.0, 4.0], ".1f") == "2.0 (1.0 to 4.0)"


def test_the_share_of_gemm_stands_beside_its_aim():
    sentence = gemm_sentence(rounds_of(ours=[100.0], dragoman=[100.0]))
    assert f"{NAMES['ours']} 50 %" in sentence
    assert "60 %" in sentence
    assert "1.90 processors" in sentence, "so that a busy machine is seen"


def test_the_speed_of_products_is_the_mean_of_before_and_after():
    assert mean_of(Gemm(1e9, 2.0), Gemm(3e9, 1.0)) == Gemm(2e9, 1.5)


def test_aims_name_settings_and_candidates_that_exist():
    assert AIMS.keys() <= SETTINGS.keys()
    assert all(set(peers) <= set(NAMES) for peers in AIMS.values())


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        (
            "[2026-11-17 13:19:50] Ep. 1 : Up. 2 : Sen. 3,165 : Cost 9.01 * 4,012 @ 4,012 after "
            "8,100 : Time 0.30s : 663.11 words/s : gNorm 1.5",
            8100,
        ),
        ("[2026-11-17 13:19:50] Training started", None),
        ("[2026-11-17 13:19:50] Ep. 1 : Up. 2 : Sen. 3 : Cost 6.0 : Time 0.30s", None),
    ],
)
def test_labels_so_far_are_read_from_the_log_of_marian(monkeypatch, line, labels):
    monkeypatch.syspath_prepend(str(PEERS))
    from run_marian import labels_so_far

    assert labels_so_far(line) == labels


def test_scripts_of_other_tools_import_nothing_of_this_project():
    scripts = [path for path in PEERS.glob("*.py") if path.name != "loops.py"]
    assert len(scripts) >= 6
    for script in scripts:
        assert "import dragoman" not in script.read_text()
        assert "from dragoman" not in script.read_text()
        assert "train_bench" not in script.read_text()


def test_the_steps_of_our_own_command_are_read_from_its_events(tmp_path):
    folder = tmp_path / "run" / "events"
    folder.mkdir(parents=True)
    lines = [
        to_line(Stamped(1000.0 + step, 50.0 + step, StepDone(step, *STEP_FIELDS)))
        for step in (1, 2)
    ]
    (folder / "attempt-001-rank-0000.jsonl").write_text("".join(lines))
    assert steps_of_run(tmp_path / "run") == [StepEnd(51.0, 3600), StepEnd(52.0, 3600)]


def test_the_reason_of_a_refused_installation_is_the_conflict():
    output = (
        "ERROR: Cannot install tool==1 because these package versions have conflicting "
        "dependencies.\n\nThe conflict is caused by:\n    tool 1 depends on torch<2.3\n"
        "    The user requested (constraint) torch==2.13.0\n\nTo fix this you could try to:\n"
    )
    assert reason_of(output) == "tool 1 depends on torch<2.3"
    assert reason_of("ERROR: no wheel\n") == "ERROR: no wheel"
