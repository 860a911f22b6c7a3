"""Chooses the pairs of each step and loads them from the shards into tensors."""
