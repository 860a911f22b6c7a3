from dragoman.cli.arguments import Overrides, Recipe


def prepare(recipe: Recipe, overrides: Overrides = None) -> None:
    """Turn raw parallel text into clean, tokenized shards.

    Example: dragoman prepare recipes/multi30k.toml --set data.folder=data/multi30k
    """
    from dragoman.config import load_config
    from dragoman.console import say
    from dragoman.preparation import prepare as prepare_data

    prepared = prepare_data(load_config(recipe, overrides or ()))
    for split, record in prepared.passport.splits.items():
        megabytes = (record.source.bytes + record.target.bytes) / 1e6
        dropped = "".join(f", {count:,} dropped: {why}" for why, count in record.dropped.items())
        say(
            f"{split}: {record.pairs_kept:,} of {record.pairs_in:,} pairs, "
            f"{megabytes:.1f} MB of text, "
            f"{record.source.tokens:,} + {record.target.tokens:,} tokens{dropped}"
        )
    say(
        f"{prepared.folder}: {prepared.passport.vocabulary:,} pieces, data hash "
        f"{prepared.passport.content_hash[:12]}"
    )
