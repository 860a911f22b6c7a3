"""Forecasts what a step and a run take, before anything runs. Pure, without torch.

A layout of parameters, a network, processors and a step's computing come in; bytes and seconds go
out. `docs/plan.md` documents every term.
"""
