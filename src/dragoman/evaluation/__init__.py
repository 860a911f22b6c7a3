"""Evaluating a model: losses on held-out pairs, scores of translations, and their files."""
