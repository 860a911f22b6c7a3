"""Which pairs make up each step, and their way from the shards into tensors."""
