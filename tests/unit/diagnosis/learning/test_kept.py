import pytest
from unit.diagnosis.learning_run import learned

from dragoman.diagnosis.learning.kept import best_kept

LOSSES, BLEU = [3.0, 2.0, 2.5, 2.6], [10.0, 20.0, 25.0, 24.0]


def kept(root, checkpoints, best=None, settings=()):
    run = learned(
        root / "run", LOSSES, bleu=BLEU, checkpoints=checkpoints, best=best, settings=settings
    )
    found = best_kept(run.facts)
    return found and found.step


def test_the_link_counts(tmp_path):
    assert kept(tmp_path, [1000, 2000, 4000], best=1000) == 1000


@pytest.mark.parametrize(("best_by", "step"), [("bleu", 4000), ("loss", 2000)])
def test_where_the_best_is_gone_the_best_of_the_rest_counts(tmp_path, best_by, step):
    settings = [f"evaluation.best_by={best_by}"]
    assert kept(tmp_path, [1000, 2000, 4000], best=3000, settings=settings) == step


def test_none_is_left(tmp_path):
    assert kept(tmp_path, []) is None


def test_a_folder_that_lacks_files_does_not_count(tmp_path):
    run = learned(tmp_path / "run", LOSSES, bleu=BLEU, checkpoints=[2000, 4000], best=4000)
    (run.facts.record.directory.checkpoints / "step-00004000" / "model.safetensors").unlink()
    from dragoman.diagnosis.run.facts import read_facts

    facts = read_facts(run.facts.record.directory, read_at=run.facts.record.read_at)
    found = best_kept(facts)
    assert found is not None
    assert found.step == 2000
