from dragoman.preparation import prepare


def test_weights_are_in_the_passport_and_the_shards(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 3.0 }')
    digits.write_text(weighted, encoding="utf-8")
    prepared = prepare(recipe())
    train = prepared.passport.splits["train"]
    assert (train.pairs_kept, train.pairs_per_epoch) == (800, 2400)
    assert len(prepared.shards("train")) == 2400
    assert train.sources[0].weight == 3.0
