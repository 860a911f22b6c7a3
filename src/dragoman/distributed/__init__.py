"""Being one of several ranks: who started us, and how to talk to the others."""
