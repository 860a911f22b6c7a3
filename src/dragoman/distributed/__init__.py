"""One rank among several: who started it, and how it communicates with the others."""
