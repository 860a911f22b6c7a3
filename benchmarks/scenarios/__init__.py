"""Runs whose truth is known, and what a diagnosis should say of each.

A `World` describes what really happens: machines, link, work, learning, faults. `simulate` writes
the run directory that training would have left in it. The cases are tables of worlds with the
verdicts that follow from them; they know nothing of how a verdict is reached.
"""
