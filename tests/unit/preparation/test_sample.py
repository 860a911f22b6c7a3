import pytest

from dragoman.preparation import pipeline, prepare
from dragoman.preparation.plan import make_plan
from dragoman.preparation.sample import sampled_texts
from dragoman.preparation.workers import LocalWorkers


@pytest.mark.parametrize("every", [1, 3, 7, 150])
@pytest.mark.usefixtures("small_slices")
def test_every_nth_pair_that_stays_is_in_the_sample(recipe, every):
    config = recipe("cleaning.duplicates=near")
    prepare(config)
    plan = make_plan(config)
    stays = [
        pair
        for number in plan.clean.numbers()
        for pair, is_kept in zip(plan.clean.pairs(number), plan.kept.flags(number), strict=True)
        if is_kept
    ]
    assert len(stays) < 800
    expected = [text for pair in stays[::every] for text in pair]
    assert list(sampled_texts(plan, every, 800, LocalWorkers(1))) == expected


@pytest.mark.usefixtures("small_slices")
def test_pieces_are_learned_from_at_most_so_many_lines(recipe, monkeypatch):
    learned = {}

    def learn(texts, lines, settings):
        learned["texts"], learned["lines"] = list(texts), lines
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "learn_pieces", learn)
    with pytest.raises(KeyboardInterrupt):
        prepare(recipe("tokenizer.sample_lines=100"))
    assert len(learned["texts"]) == learned["lines"] == 100
