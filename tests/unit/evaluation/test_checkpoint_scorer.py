"""With a trained run, and as a real process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from processes import wait_until

from dragoman.config import load_config
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.trained import load_model
from dragoman.errors import UserError
from dragoman.evaluation.beside import PROGRAM, ScoreRequest, SideProcess
from dragoman.evaluation.checkpoint_scorer import (
    FIRST_TO_GO,
    NICENESS,
    SCRATCH,
    open_ctranslate2,
    score_checkpoint,
)
from dragoman.rundir import RunDir, read_sentences
from dragoman.shards.passport import PreparedData

pytestmark = pytest.mark.timeout(200)
CPU = torch.device("cpu")


@pytest.fixture
def request_of_it(trained):
    config, run = load_config(trained[0]), RunDir(trained[1])
    sources, references = PreparedData.open(config.prepared_folder).text("validation")
    return ScoreRequest(
        run=run.root,
        step=2,
        best_step=None,
        sources=sources,
        references=references,
        decoding=config.decoding.model_copy(update={"beam": 1}),
        longest=config.data.max_length,
        target_language="de",
        samples=2,
    )


def with_torch(run, chosen):
    return TorchEngine(load_model(chosen, CPU), chosen.tokenizer, CPU)


def test_the_scores_are_those_of_torch(request_of_it):
    run = RunDir(request_of_it.run)
    theirs = score_checkpoint(request_of_it, with_torch)
    written = read_sentences(run.translations(2))
    ours = score_checkpoint(request_of_it, open_ctranslate2)
    assert ours.scores == theirs.scores
    assert ours.samples == theirs.samples
    assert len(ours.samples) == 2
    assert read_sentences(run.translations(2)) == written
    assert len(written) == len(request_of_it.sources) == 40


def test_translations_are_compared_with_the_best_before(request_of_it):
    score_checkpoint(request_of_it, open_ctranslate2)
    run = RunDir(request_of_it.run)
    run.translations(1).write_text("null\n" * 40)
    again = score_checkpoint(request_of_it.model_copy(update={"best_step": 1}), open_ctranslate2)
    assert again.compared.step == 1
    assert 0 < again.compared.bleu_gain_p <= 1


def test_what_a_killed_one_has_left_is_in_nobodys_way(request_of_it):
    scratch = RunDir(request_of_it.run).converted / SCRATCH
    scratch.mkdir(parents=True)
    (scratch / "model.bin").write_text("half of a")
    score_checkpoint(request_of_it, open_ctranslate2)
    assert not scratch.exists()


def test_a_checkpoint_that_is_not_there_is_refused(request_of_it):
    with pytest.raises(UserError, match="no checkpoint of step 3"):
        score_checkpoint(request_of_it.model_copy(update={"step": 3}), open_ctranslate2)


def test_a_process_gives_the_same_answer(request_of_it):
    process = SideProcess(request_of_it, threads=1)
    try:
        assert process.wait(120)
        answer = process.answer()
    finally:
        process.close()
    here = score_checkpoint(request_of_it, open_ctranslate2)
    assert (answer.scores, answer.samples) == (here.scores, here.samples)


def gives_way(pid: int) -> bool:
    """Whether it has prepared itself; niceness comes before that, and may be inherited."""
    return Path(f"/proc/{pid}/oom_score_adj").read_text() == FIRST_TO_GO + "\n"


def test_a_process_gives_way_before_it_imports_anything_large():
    """It waits for its request, and so does this test: nobody has written one."""
    with subprocess.Popen(
        [sys.executable, "-m", PROGRAM, str(os.getpid()), "1"], stdin=subprocess.PIPE
    ) as process:
        wait_until(lambda: gives_way(process.pid))
        seen = psutil.Process(process.pid)
        assert seen.nice() == NICENESS
        assert not any("libtorch" in mapped.path for mapped in seen.memory_maps())
        process.kill()


def test_a_process_leaves_signals_to_the_trainer(request_of_it):
    """Job systems send them to all processes at once."""
    process = SideProcess(request_of_it, threads=1)
    try:
        wait_until(lambda: gives_way(process.pid))
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(process.pid, number)
        assert process.wait(120)
        assert process.answer().scores.bleu >= 0
    finally:
        process.close()


PARENT = """
import subprocess, sys, os
child = subprocess.Popen([sys.executable, "-m", sys.argv[1], str(os.getpid()), "1"],
                         stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.readline()
"""


def test_a_process_ends_with_its_parent(tmp_path):
    """Wherever it is: here it waits for a request that nobody writes."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        wait_until(lambda: gives_way(child.pid))
        parent.kill()
        wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
