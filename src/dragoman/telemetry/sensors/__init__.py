"""The instruments of a host: one module a kind, each reading a flat dict of numbers.

A sensor is made by a function that fails with `AbsentError` where there is nothing to read, and has
a `read` that may fail at any later time; the sampler takes both as a fact to record. Names have the
unit; what ends in `_total` counts up, all else is a state of the moment.
"""
