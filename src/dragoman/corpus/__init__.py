"""From sources named in a recipe to sentence pairs that are worth learning from."""
