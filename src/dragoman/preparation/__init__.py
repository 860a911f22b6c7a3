"""From a recipe to prepared data, in stages that can be interrupted, repeated and spread out.

    prepared/<name>/
      index-<key>/       where slices begin in files of plain lines
      clean-<key>/       training text in slices, cleaned, with a key for each pair
      kept-<key>/        which of these pairs stay: no duplicates, no leaks
      overlap-<key>/     what several sources have in common, and the weights that it keeps
      held-out-<key>/    validation and test text, every line
      tokenizer-<key>/   the subword model
      shards-<key>/      ids of all splits
      data.json          the passport, which names the files that count

A stage's key is a hash of all that its result depends on. So a finished slice is never redone, a
changed setting redoes what follows from it and nothing else, and what an older passport names
stays until a newer one is whole.
"""

from dragoman.preparation.corpus_size import expected_pairs
from dragoman.preparation.pipeline import clean_share, dropped_examples, join, prepare
from dragoman.preparation.slices import Share

__all__ = ["Share", "clean_share", "dropped_examples", "expected_pairs", "join", "prepare"]
