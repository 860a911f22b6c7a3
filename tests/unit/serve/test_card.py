from dragoman.decoding.translator import Translator
from dragoman.evaluation.scores import ScoredSplit, write_scores
from dragoman.rundir import RunDir
from dragoman.serve.card import read_card

SCORED = ScoredSplit(
    split="test",
    steps=[2],
    sentences=40,
    beam=4,
    bleu=12.5,
    chrf=30.0,
    bleu_signature="x",
    chrf_signature="y",
    bleu_low=11.0,
    bleu_high=14.0,
)


def test_a_card_has_what_is_recorded_of_a_run(trained):
    _, folder = trained
    run, translator = RunDir(folder), Translator.load(folder)
    card = read_card(run, translator)
    assert (card.name, card.source, card.target, card.steps) == ("digits", "en", "de", [2])
    assert card.parameters > 1000
    assert "width 32" in card.architecture
    assert card.score is None

    write_scores(run, SCORED, ["a"], ["b"])
    score = read_card(run, translator).score
    assert (score.split, score.bleu, score.bleu_low, score.bleu_high) == ("test", 12.5, 11.0, 14.0)

    run.evaluation("test").write_text("{")
    assert read_card(run, translator).score is None
