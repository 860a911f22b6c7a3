"""Turns the sources of a recipe into sentence pairs that are worth learning from."""
