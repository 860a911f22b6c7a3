"""The card of a model, as the page shows it: what is recorded of a run, and nothing else."""

from pydantic import BaseModel

from dragoman.config import load_config
from dragoman.decoding.translator import Translator
from dragoman.evaluation.scores import all_scores
from dragoman.export.model_card import architecture_of
from dragoman.model.size import count_parameters
from dragoman.rundir import RunDir


class Score(BaseModel):
    """BLEU on a set of sentences, with its 95 % interval where that was computed."""

    split: str
    sentences: int
    steps: list[int]
    """Of the weights that were scored, which may be older than those that translate."""
    bleu: float
    bleu_low: float | None
    bleu_high: float | None
    chrf: float


class Card(BaseModel):
    name: str
    """Of the recipe."""
    source: str
    target: str
    steps: list[int]
    """Of the checkpoints that the weights come from."""
    parameters: int
    architecture: str
    engine: str
    score: Score | None
    """None: the run was not evaluated."""


def read_card(run: RunDir, translator: Translator) -> Card:
    config = load_config(run.config)
    return Card(
        name=config.name,
        source=config.data.source_language,
        target=config.data.target_language,
        steps=translator.steps,
        parameters=count_parameters(config.model, translator.tokenizer.size),
        architecture=architecture_of(config.model),
        engine=translator.engine.description,
        score=_score_of(run),
    )


def _score_of(run: RunDir) -> Score | None:
    """Returns the score of the first test set, or of another where there is none."""
    first = next(iter(all_scores(run)), None)
    return Score.model_validate(first.model_dump()) if first else None
