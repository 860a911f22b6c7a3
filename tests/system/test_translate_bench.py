"""`make bench-translate`: turns, peers in their processes, tables; and once as a whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from train_bench.watch import CandidateError
from translate_bench.candidates import OURS, PLAIN, TORCH, Translated, peer_candidate
from translate_bench.job import write_task
from translate_bench.peer import Peer
from translate_bench.starts import measure_starts
from translate_bench.tables import count_equal, figure_table, precision_line, ratio_lines
from translate_bench.turns import Measured, take_turns

from dragoman.decoding.translator import Translator

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "translate_bench" / "peers"
ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    found = [[ids[:-1][: request["beam"]] for ids in batch] for batch in request["batches"]]
    print(json.dumps({"seconds": 2.5, "batches": found}), flush=True)
"""
BREAKS = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
sys.exit("out of patience")
"""


def of_program(tmp_path, program):
    return Peer([sys.executable, "-c", program], tmp_path / "log", threads=1)


def fake(seconds, texts=("a", "b")):
    """A candidate that takes one of `seconds` after the other, each for all and for the first."""
    left = iter(seconds)
    return lambda sentences, beam: Translated(next(left), list(texts)[: len(sentences)])


def test_the_first_turn_does_not_count_and_ratios_are_those_within_a_turn():
    candidates = {
        TORCH: fake([9.0, 9.0, 1.0, 0.1, 2.0, 0.2]),
        "opennmt-py": fake([9.0, 9.0, 3.0, 0.3, 2.0, 0.2], ["a", "x"]),
    }
    found = take_turns(candidates, ["s", "t"], 5, 2, failed=None)
    assert found.seconds == {TORCH: [1.0, 2.0], "opennmt-py": [3.0, 2.0]}
    assert found.first_s == {TORCH: [0.1, 0.2], "opennmt-py": [0.3, 0.2]}
    assert found.ratios(TORCH, "opennmt-py") == [3.0, 1.0]
    assert ratio_lines(found) == [
        f"{TORCH} is 2.00 (1.00 to 3.00) times as fast as opennmt-py; the aim of 2.00 is met"
    ]
    table = figure_table(found, ["a", "b"], "de")
    assert "| opennmt-py | 0.8 (0.7 to 1.0) | 250.0 (200.0 to 300.0) | 1 |" in table


def test_a_candidate_that_fails_is_left_out_and_the_others_go_on():
    def failing(sentences, beam):
        raise CandidateError("no memory")

    reasons = {}
    candidates = {"one": fake([1.0] * 6), "two": failing}
    found = take_turns(candidates, ["s", "t"], 1, 2, reasons.__setitem__)
    assert reasons == {"two": "no memory"}
    assert set(found.texts) == set(found.seconds) == {"one"}
    assert len(found.seconds["one"]) == 2
    taken = measure_starts({"one": lambda: None, "two": lambda: failing([], 1)}, 3, lambda *_: None)
    assert set(taken) == {"one"}
    assert len(taken["one"]) == 3


def test_aims_belong_to_the_pairs_they_were_set_for():
    seconds = {OURS: [1.0], PLAIN: [0.9], TORCH: [4.0]}
    found = Measured(seconds, seconds, {name: [""] for name in seconds})
    lines = ratio_lines(found)
    assert any(PLAIN in line and "0.95 is missed" in line for line in lines)
    assert any(line.endswith(f"times as fast as {TORCH}") for line in lines)


def test_int8_is_compared_with_float32():
    references = ["ein mann fährt heute rad .", "zwei hunde spielen im schnee ."]
    line = precision_line(references, ["ein mann fährt heute rad .", "zwei"], references, "de")
    assert "100.00 BLEU" in line
    assert "1 translations equal" in line
    assert count_equal(references, references) == 2


def test_a_peer_gets_batches_of_ids_and_its_own_seconds_count(tmp_path, trained):
    _, run = trained
    translator = Translator.load(run, device="cpu")
    with of_program(tmp_path, ECHO) as peer:
        peer.wait_until_ready()
        candidate = peer_candidate(peer, translator.tokenizer, translator._settings)
        found = candidate(["one two three four", "", "five"], 100)
        short = candidate(["one two three four"], 1)
    assert found.texts == ["one two three four", "", "five"]
    assert 2.5 <= found.seconds < 60
    assert len(short.texts[0]) < len(found.texts[0])


def test_a_peer_that_breaks_says_why(tmp_path):
    with of_program(tmp_path, BREAKS) as peer:
        peer.wait_until_ready()
        with pytest.raises(CandidateError, match=r"exit code 1: out of patience"):
            peer.translate([[[1, 2]]], [5], 1)
    with (
        of_program(tmp_path, "import no_such_package") as peer,
        pytest.raises(CandidateError, match="no_such_package"),
    ):
        peer.wait_until_ready()


def test_the_job_holds_the_model_as_others_need_it(tmp_path, trained):
    _, run = trained
    task = write_task(run, tmp_path)
    job = json.loads(task.job.read_text())
    assert [job[name] for name in ("padding", "unknown", "start", "end")] == [0, 1, 2, 3]
    assert len(job["pieces"]) == task.tokenizer.size
    with np.load(job["weights"]) as weights:
        assert weights["embedding.weight"].shape == (task.tokenizer.size, job["width"])
        assert weights["positions"].shape == (5000, job["width"])
    assert len(task.sources) == len(task.references) > 0


def test_weights_find_their_places_in_another_model(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    serving = __import__("serving")
    names = serving.Names(
        *(("table.weight",), ("places",), {"encoder": "layers.{}"}),
        {"self_attention": "attention", "feed_forward.norm": "norm"},
        *({}, {"query": "q", "key": "k", "value": "v", "output": "o"}),
    )
    width = 4
    arrays = {
        "embedding.weight": np.ones((3, width)),
        "positions": np.full((2, width), 2.0),
        "encoder.0.self_attention.query_key_value.weight": np.arange(48.0).reshape(12, 4),
        "encoder.0.self_attention.output.weight": np.full((4, 4), 5.0),
        "encoder.0.feed_forward.norm.weight": np.full(4, 6.0),
        "encoder.0.feed_forward.norm.bias": np.full(4, 7.0),
    }
    np.savez(tmp_path / "weights.npz", **arrays)
    layer = torch.nn.Module()
    layer.attention = torch.nn.ModuleDict({n: torch.nn.Linear(4, 4) for n in "qkvo"})
    layer.norm = torch.nn.LayerNorm(4, eps=1e-6)
    model = torch.nn.Module()
    model.table, model.layers = torch.nn.Embedding(3, 4), torch.nn.ModuleList([layer])
    model.register_buffer("places", torch.zeros(1, 2, 4))
    serving.carry_weights(model, names, str(tmp_path / "weights.npz"))
    assert layer.attention["k"].weight.flatten().tolist() == list(range(16, 32))
    assert layer.attention["k"].bias.abs().sum() == 0
    assert model.places.unique().tolist() == [2.0]
    assert layer.norm.bias.unique().tolist() == [7.0]
    assert layer.norm.eps == 1e-5
    model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(KeyError, match=r"extra\.weight"):
        serving.carry_weights(model, names, str(tmp_path / "weights.npz"))


def test_scripts_of_other_environments_import_nothing_of_this_project():
    scripts = list(PEERS.glob("*.py"))
    assert len(scripts) == 4
    for script in scripts:
        text = script.read_text()
        assert not any(word in text for word in ("dragoman", "translate_bench", "train_bench"))


def test_it_runs_as_a_whole_without_other_tools(tmp_path, trained):
    _, run = trained
    command = [sys.executable, str(ROOT / "benchmarks" / "translate.py"), "--run", str(run)]
    command += ["--sentences", "4", "--rounds", "1", "--beams", "1", "2", "--only", ""]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "### Beam 2, 4 sentences" in done.stdout
    assert done.stdout.count("int8 against float32 on all") == 2
    for name in (OURS, PLAIN, TORCH):
        assert f"| {name} |" in done.stdout
