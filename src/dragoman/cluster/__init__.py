"""Starts training on the workers of one or more machines."""
