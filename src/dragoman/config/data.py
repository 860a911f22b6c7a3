"""What preparation reads of a recipe: its data, how they are cleaned, and their tokenizer."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dragoman.config.bounds import LARGEST_INTEGER, Amount, AmountOrZero, above, between
from dragoman.config.section import Section
from dragoman.config.sources import CorpusSources
from dragoman.config.texts import Address, Text


class DataSettings(Section):
    source_language: Text
    """ISO 639 code of the source language: en."""
    target_language: Text
    """ISO 639 code of the target language: de."""
    folder: Text = "."
    """Folder in which the files of the sources are; as all paths, relative to the recipe's own."""
    cache: Text = ""
    """Folder for downloads; empty: dragoman in the user's cache folder."""
    mirror: Address = ""
    """Address to download from instead; it must serve each file as <host>/<path>."""
    prepared: Text = ""
    """Folder for tokenizer and shards; empty: prepared/<name of the recipe> in the current
    folder."""
    prepared_from: Address = ""
    """Address of prepared data that `dragoman prepare --publish` has put there: s3://, gs://,
    az://, https:// or file://. Hosts fetch it into data.prepared by themselves, and train while
    training tokens still arrive. Needs dragoman[storage]."""
    prepared_max_bytes: Annotated[int, between(0, LARGEST_INTEGER)] = 0
    """Most bytes of training tokens from data.prepared_from that a host keeps, at least two blocks
    (data.block_pairs); 0: all."""
    train: Annotated[CorpusSources, Field(min_length=1)]
    """Training data: one table per source."""
    validation: Annotated[CorpusSources, Field(min_length=1)]
    """Validation data, evaluated during training."""
    test: CorpusSources = ()
    """Test data for `dragoman evaluate`."""
    max_length: Annotated[int, between(1, 100_000)] = 256
    """Training pairs with more pieces than this on either side are dropped and counted."""
    block_pairs: AmountOrZero = 0
    """Training pairs that are shuffled together, in whole shards of up to 100,000 pairs. An epoch
    goes through such blocks one after the other, so that a host needs one or two of them at a
    time; fewer pairs mix less well. 0: all pairs are one block."""

    @property
    def cache_folder(self) -> Path:
        if self.cache:
            return Path(self.cache)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"


class CleaningSettings(Section):
    """Applies to training pairs; validation and test keep every line."""

    unicode_form: Literal["NFC", "NFKC", "none"] = "NFC"
    """Unicode normalization of both sides; NFKC also unifies full-width and other variants."""
    max_characters: Annotated[int, between(1, 10_000_000)] = 2000
    """Drop pairs with a longer side."""
    max_ratio: Annotated[float, above(1, 1_000_000)] = 4.0
    """Drop pairs whose longer side has more than this many times the characters of the other."""
    drop_copies: bool = True
    """Drop pairs whose two sides are identical."""
    scripts: bool = True
    """Drop pairs with a side whose letters are mostly not of its language's script."""
    languages: bool = False
    """Drop pairs with a side that is clearly in another language; needs dragoman[language]."""
    duplicates: Literal["near", "exact", "keep"] = "near"
    """Which pairs count as duplicates, of which only the first is kept; near: equal except for
    case, punctuation, digits and spaces."""
    drop_leaks: bool = True
    """Drop training pairs that occur in validation or test, by the same measure."""


class TokenizerSettings(Section):
    kind: Literal["bpe", "unigram"] = "bpe"
    """How SentencePiece learns its pieces, from both sides together."""
    vocabulary: Annotated[int, between(5, 1_000_000)] = 32768
    """Number of pieces, including the four special ones."""
    sample_lines: Amount = 2_000_000
    """Learn from at most this many lines, sampled evenly from the training text."""
    character_coverage: Annotated[float, between(0.98, 1)] = 1.0
    """Share of all characters that are covered by pieces; the rest become unknown."""
    model: Text = ""
    """An existing SentencePiece .model file to use instead of learning one; its number of pieces
    counts, and not vocabulary."""
