from prepared import append

from dragoman.preparation import dropped_examples, prepare


def test_the_passport_counts_what_is_there(digits_config, digits):
    append(digits.parent / "train.en", "\none two\n" + "nine " * 300 + "\n")
    append(digits.parent / "train.de", "leer\n\n" + "neun " * 300 + "\n")
    prepared = prepare(digits_config)
    train = prepared.passport.splits["train"]
    assert (train.pairs_in, train.pairs_kept) == (803, 800)
    assert train.dropped == {
        "source empty": 1,
        "target empty": 1,
        "longer than data.max_length": 1,
    }
    assert {reason: len(pairs) for reason, pairs in dropped_examples(digits_config).items()} == {
        "source empty": 1,
        "target empty": 1,
        "longer than data.max_length": 1,
    }
    shards = prepared.shards("train")
    assert len(shards) == 800
    assert shards.lengths().sum(axis=0).tolist() == [train.source.tokens, train.target.tokens]
    assert sum(train.source.lengths) == 800
    prepared.verify()


def test_weights_are_in_the_passport_and_the_shards(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 3.0 }')
    digits.write_text(weighted, encoding="utf-8")
    prepared = prepare(recipe())
    train = prepared.passport.splits["train"]
    assert (train.pairs_kept, train.pairs_per_epoch) == (800, 2400)
    assert len(prepared.shards("train")) == 2400
    assert train.sources[0].weight == 3.0
