"""How a model is evaluated while it trains, and how it translates."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from dragoman.config.bounds import Amount, AmountOrZero, Beam, Steps, above, between
from dragoman.config.section import Section


class EvaluationSettings(Section):
    every_steps: Steps = 2000
    """Evaluate loss, BLEU and chrF every this many updates, and after the last."""
    train_sample_pairs: AmountOrZero = 1000
    """Size of a fixed sample of training pairs whose loss is evaluated like that of validation."""
    translate_sentences: AmountOrZero = 0
    """Translate only this many validation sentences for BLEU, from the first; 0: all."""
    samples: Annotated[int, between(0, 1000)] = 3
    """Number of translations shown in the log after each evaluation."""
    best_by: Literal["loss", "bleu"] = "bleu"
    """Metric that decides the best checkpoint and patience."""
    beam: Beam = 1
    """Beam size during training; 1: greedy search, the fastest."""
    beside: bool = False
    """Translate and score beside training: a process on idle cores of the first host does it with
    CTranslate2, and the scores decide at the next evaluation. Losses are still measured at once."""
    beside_threads: Annotated[int, between(0, 4096)] = 0
    """With beside: threads of that process; 0: as many as the host has cores that do not train."""

    @model_validator(mode="after")
    def threads_have_a_process(self) -> Self:
        if self.beside_threads and not self.beside:
            raise ValueError(
                f"beside_threads = {self.beside_threads} means nothing without beside = true; "
                "remove it, or set that"
            )
        return self


class DecodingSettings(Section):
    beam: Beam = 4
    """Hypotheses kept per sentence; 1: greedy search."""
    length_penalty: Annotated[float, between(0, 10)] = 0.6
    """Scores are divided by the number of pieces, the end included, to this power, as in
    CTranslate2 and Hugging Face; larger favors longer translations."""
    max_length_factor: Annotated[float, above(0, 100)] = 1.5
    """A translation has at most this many times the pieces of its source, rounded up to a multiple
    of 16, plus ten."""
    batch_tokens: Amount = 4096
    """Padded source tokens that are translated at once."""
