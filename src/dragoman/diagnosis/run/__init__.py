"""The facts of a run, each derived once, without opinions."""
