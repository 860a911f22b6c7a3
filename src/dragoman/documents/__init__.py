"""Documents around sentences: files come in, texts are split, and translations take their place."""
