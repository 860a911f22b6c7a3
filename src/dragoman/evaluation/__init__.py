"""How good a model is: loss on held-out pairs, and scores of real translations of raw text."""
