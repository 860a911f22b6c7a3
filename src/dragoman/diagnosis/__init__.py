"""What the records of a run say about what went wrong in it."""
