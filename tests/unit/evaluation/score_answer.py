"""What a process that scores a checkpoint might answer."""

from dragoman.evaluation.beside import ScoreAnswer
from dragoman.evaluation.scoring import Scores
from dragoman.evaluation.translations import ComparedWithBest

ANSWER = ScoreAnswer(
    scores=Scores(31.5, 50.0, "b", "c", 30.0, 33.0),
    compared=ComparedWithBest(None, None),
    samples=[{"source": "one", "translation": "eins", "reference": "eins"}],
    seconds=2.5,
)
