"""Measures hosts and the network between them before a run, and says what is unfit and why."""
