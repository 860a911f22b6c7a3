"""The answer about overfitting in sentences, and what to do about it."""

from dragoman.diagnosis.learning.rises import Rise
from dragoman.diagnosis.phrasing import count

BLEU_FALLS = " BLEU has fallen by {:.1f} since then."
BLEU_RISES = (
    " BLEU has risen by {:.1f} since then: so far it costs probabilities, not translations."
)
BLEU_WAVERS = " BLEU has not fallen yet: so far it costs probabilities, not translations."

HARDLY = "little more than it may waver by itself"
UNSTEADY = "the validation loss has risen and does not rise steadily against the training sample"


def too_few(evaluations: int, least: int) -> str:
    return (
        f"Too early to say: there {_are(evaluations)} so far, and a trend needs {least}. "
        f"After {count(least - evaluations, 'more evaluation')} it can be said."
    )


def yes(step: int, rise: Rise, train_change: float, bleu: str) -> str:
    return (
        f"Yes, since step {step:,}: the validation loss has risen by {rise.rise:.3f} nats while "
        f"the loss on a fixed sample of the training pairs went on falling by "
        f"{-train_change:.3f}.{bleu}"
    )


def advice_on_yes(step: int, best_checkpoint: str | None, bleu_rises: bool) -> str:
    best = f"Use the best checkpoint{f' ({best_checkpoint})' if best_checkpoint else ''}"
    if bleu_rises:
        now = f"{best}, which is chosen by BLEU, and stop this run when BLEU rises no more."
    else:
        now = f"{best} or one from around step {step:,}, and stop this run."
    return (
        f"{now} For a better model: more training pairs, more model.dropout, or a smaller model; "
        "training.patience stops the next run in time."
    )


def at_its_lowest(last: float) -> str:
    return f"the validation loss is at its lowest, {last:.3f} nats"


def wavers(last: float) -> str:
    return (
        f"the validation loss, {last:.3f} nats, has not risen by more than it may waver by itself"
    )


def small(rise: Rise) -> str:
    return f"the validation loss has risen by no more than {rise.rise:.3f} nats"


def passed_before(rise: Rise) -> str:
    return (
        f"the validation loss has risen by {rise.rise:.3f} nats, hardly more than in earlier rises "
        "from which it came back"
    )


def in_doubt(rise: Rise) -> str:
    return f"the validation loss has risen by {rise.rise:.3f} nats, {HARDLY}"


def gap(validation: float, train_sample: float) -> str:
    where = "above" if validation >= train_sample else "below"
    return (
        f" It is {abs(validation - train_sample):.3f} nats {where} the loss on a sample of the "
        "training pairs; such a gap alone is no overfitting."
    )


def perhaps(step: int, rise: Rise, more: int) -> str:
    """`more`: evaluations that are missing; 0: the rise itself is in doubt."""
    why = f"{HARDLY}. The next evaluations will tell."
    if more:
        why = (
            f"but there {_are(rise.after)} since then. After {count(more, 'more evaluation')} it "
            "can be said."
        )
    return (
        f"Too early to say: since step {step:,} the validation loss has risen by "
        f"{rise.rise:.3f} nats, {why}"
    )


def both_rise(step: int, rise: Rise, train_change: float) -> str:
    return (
        f"No, but after step {step:,} the run began to lose what it had learned: the validation "
        f"loss has risen by {rise.rise:.3f} nats, and so has the loss on a sample of the training "
        f"pairs, by {train_change:.3f}. That is no overfitting but a learning rate that is too "
        "high, or broken data."
    )


def cannot_tell(step: int) -> str:
    return (
        f"the validation loss has risen since step {step:,}, and without losses on a training "
        "sample nobody can tell overfitting from a run that falls apart; set "
        "evaluation.train_sample_pairs to 1000"
    )


def _are(number: int) -> str:
    return f"{'is' if number == 1 else 'are'} {count(number, 'evaluation')}"
