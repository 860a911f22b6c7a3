from recorded import events

from dragoman.telemetry.events import (
    Evaluated,
)


def test_evaluations_come_on_time_and_at_the_end(run_with):
    _, run = run_with("training.steps=13", "evaluation.every_steps=5")
    evaluated = events(run, Evaluated)
    assert [event.step for event in evaluated] == [5, 10, 13]
    assert all(event.train_sample_loss > 0 and event.validation_loss > 0 for event in evaluated)
    assert "tok:13a" in evaluated[0].bleu_signature
    assert set(evaluated[0].samples[0]) == {"source", "translation", "reference"}


def test_evaluations_know_how_sure_their_figures_are(run_with, caplog):
    caplog.set_level("INFO", "dragoman")
    _, run = run_with("training.steps=13", "evaluation.every_steps=5")
    evaluated = events(run, Evaluated)
    assert all(0 < e.validation_loss_error < e.validation_loss for e in evaluated)
    assert all(0 < e.train_sample_loss_error < e.train_sample_loss for e in evaluated)
    assert all(e.bleu_low <= e.bleu_high for e in evaluated)
    last = evaluated[-1]
    interval = f"({last.bleu_low:.1f} to {last.bleu_high:.1f})"
    assert f"BLEU {last.bleu:.1f} {interval}" in caplog.text
    best_before = next(e.step for e in reversed(evaluated[:2]) if e.is_best)
    assert [e.compared_step for e in evaluated] == [None, 5, best_before]
    assert evaluated[0].bleu_gain_p is None
    assert all(0 < e.bleu_gain_p <= 1 for e in evaluated[1:])
    assert sorted(path.name for path in run.references.parent.iterdir()) == [
        "references.txt",
        *(f"step-{step:08d}.txt" for step in (5, 10, 13)),
    ]
