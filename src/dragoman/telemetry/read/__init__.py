"""The events of a run, read back as objects or as tables."""
