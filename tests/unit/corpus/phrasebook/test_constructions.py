from random import Random

from dragoman.corpus.phrasebook import english, sentence_pairs
from dragoman.corpus.phrasebook.constructions import CONSTRUCTIONS


def test_every_construction_gives_sentences_of_moderate_length() -> None:
    rng = Random(11)
    for construct in CONSTRUCTIONS:
        lengths = [len(english.sentence(construct(rng)).split()) for _ in range(100)]
        assert min(lengths) >= 2
        assert max(lengths) <= 24
    pairs = list(sentence_pairs("train", 3000, seed=0))
    mean = sum(len(source.split()) for source, _ in pairs) / len(pairs)
    assert 7 < mean < 10


def test_most_draws_give_a_new_sentence_even_after_many() -> None:
    rng = Random(5)
    constructions = list(CONSTRUCTIONS)
    weights = list(CONSTRUCTIONS.values())
    drawn = [
        english.sentence(construct(rng))
        for construct in rng.choices(constructions, weights, k=50_000)
    ]
    assert len(set(drawn[25_000:]) - set(drawn[:25_000])) > 0.85 * 25_000
