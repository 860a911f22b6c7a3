"""A trained model over HTTP: runs come in, an API that LibreTranslate's clients know goes out."""
