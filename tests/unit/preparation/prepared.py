"""What is compared of prepared data."""


def content(prepared):
    """Everything that the passport vouches for."""
    files = [f.name for split in prepared.passport.splits.values() for f in split.shards]
    files.append(prepared.passport.tokenizer_file)
    return {name: (prepared.folder / name).read_bytes() for name in files}
