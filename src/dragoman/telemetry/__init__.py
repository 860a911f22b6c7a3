"""What happened in a run, recorded without holding it up, and read back by all that watches."""
