"""Prepared data on disk: ids in memory-mapped files, and the passport that vouches for them."""
