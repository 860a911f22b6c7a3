"""Dragoman trains translation models across machines and guides its user through the run."""

__version__ = "0.1.0"
